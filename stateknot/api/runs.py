"""Runs: starting, listing, reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.reverse import reverse

from stateknot.api import shapes
from stateknot.api.bodies import CancelBody, MoveBody, StartBody, parse
from stateknot.api.endpoint import VIEW, Endpoint, require_allowed, require_permissions
from stateknot.api.paging import IdCursor
from stateknot.api.parameters import query_parameters
from stateknot.api.projection import refuse_masks, show_plan, show_run
from stateknot.api.queries import Query, RunQuery, read_query, split_pairs
from stateknot.api.repeating import repeatable
from stateknot.errors import ThreadBusyError
from stateknot.kernel.commands import GraphInput
from stateknot.kernel.profile import check_profile
from stateknot.kernel.vocabulary import START, UNSET
from stateknot.models import Run, Thread
from stateknot.registry import get_graph
from stateknot.selectors import get_run, list_runs
from stateknot.selectors.access import find_thread, get_visible_run, limit
from stateknot.services import cancel_run, move_run, plan_move, start_run

if TYPE_CHECKING:
    from rest_framework.request import Request

    from stateknot.api.bodies import InputBody


class RunList(Endpoint):
    """All runs."""

    tag = "runs"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "GET": (VIEW,),
        "POST": ("stateknot.start_run",),
    }

    @extend_schema(
        operation_id="list_runs",
        parameters=query_parameters(RunQuery),
        responses=shapes.RunPage,
    )
    def get(self, request: Request) -> Response:
        """List runs, newest first, that match every filter given."""
        query = read_query(RunQuery, request)
        rows = list_runs(
            graph_id=query.graph,
            status=query.status and query.status.value,
            thread_id=query.thread_id,
            failed_node=query.failed_node,
            root_run_id=query.root_run_id,
            since=query.since,
            metadata=split_pairs(query.metadata),
        ).select_related("revision")
        rows = limit(rows, request.user)
        pages = IdCursor(query.limit)
        found = pages.paginate_queryset(rows, request, view=self)
        page = shapes.RunPage(
            next=pages.get_next_link(),
            previous=pages.get_previous_link(),
            results=[show_run(run) for run in found or ()],
        )
        return Response(page.model_dump(mode="json"))

    @extend_schema(
        operation_id="start_run",
        request=StartBody,
        responses={201: shapes.Run},
    )
    @repeatable
    def post(self, request: Request) -> Response:
        """Start a run on the workers; the answer does not wait for it."""
        body = parse(StartBody, request.data)
        if body.on_busy == "supersede":
            require_permissions(request, "stateknot.cancel_run")
        graph = get_graph(body.graph, version=body.version)
        refuse_masks(body.state, graph.blueprint.fold.codec)
        _require_startable(request, body)
        try:
            run = _start(request, body)
        except ThreadBusyError:
            # Somebody may have taken the thread since; who, is not for everybody.
            _require_startable(request, body)
            raise
        address = reverse("stateknot-api:run", args=[str(run.id)], request=request)
        shown = show_run(run).model_dump(mode="json")
        return Response(shown, status=201, headers={"Location": address})


class RunDetail(Endpoint):
    """One run."""

    tag = "runs"

    @extend_schema(operation_id="get_run", responses=shapes.Run)
    def get(self, request: Request, run_id: str) -> Response:
        """Read a run, its error with the traceback."""
        read_query(Query, request)
        found = get_visible_run(request.user, run_id)
        run = show_run(found, with_traceback=True)
        return Response(run.model_dump(mode="json"))


class RunCancel(Endpoint):
    """Ends a run before it comes to its own end."""

    tag = "runs"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.cancel_run",)
    }

    @extend_schema(
        operation_id="cancel_run", request=CancelBody, responses={202: shapes.Run}
    )
    @repeatable
    def post(self, request: Request, run_id: str) -> Response:
        """End a run and its child runs, or ask the worker that drives it to.

        While its status is not `cancelled`, its worker was asked and has not ended yet.
        """
        body = parse(CancelBody, request.data or {})
        found = get_visible_run(request.user, run_id)
        require_allowed(request, found.thread, "cancel_run")
        cancel_run(run_id, reason=body.reason, actor=request.user)
        shown = show_run(get_run(run_id)).model_dump(mode="json")
        return Response(shown, status=202)


class RunMove(Endpoint):
    """Moves a run to another revision of its graph."""

    tag = "runs"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.move_run",)
    }

    @extend_schema(operation_id="move_run", request=MoveBody, responses=shapes.Moved)
    @repeatable
    def post(self, request: Request, run_id: str) -> Response:
        """Pin a run that stands still to another revision, or say what that does.

        Nothing is written by a dry run, nor where the plan has problems.
        """
        body = parse(MoveBody, request.data)
        run = get_visible_run(request.user, run_id)
        require_allowed(request, run.thread, "move_run")
        plan = plan_move(run_id, body.digest, aliases=body.aliases)
        if not body.dry_run:
            run = move_run(
                run_id, plan.to_digest, aliases=body.aliases, actor=request.user
            )
        is_moved = not body.dry_run and plan.from_digest != plan.to_digest
        told = shapes.Moved(is_moved=is_moved, plan=show_plan(plan), run=show_run(run))
        return Response(told.model_dump(mode="json"))


def _require_startable(request: Request, body: StartBody) -> None:
    """Refuse a start that the object rules forbid.

    Raises NotFoundError for a thread that the user may not see, PermissionDenied.
    """
    found = None
    if body.thread_id is not None:
        found = find_thread(request.user, body.thread_id)
    thread = found or Thread(key=body.thread_id or "", graph_id=body.graph)
    require_allowed(request, thread, "start_run")
    if body.on_busy == "supersede":
        require_allowed(request, thread, "cancel_run")


def _start(request: Request, body: StartBody) -> Run:
    return start_run(
        body.graph,
        body.state,
        thread_id=body.thread_id,
        version=body.version,
        inputs=_graph_inputs(body),
        metadata=body.metadata,
        on_busy=body.on_busy,
        actor=request.user,
    )


def _graph_inputs(body: StartBody) -> list[GraphInput] | None:
    return None if body.inputs is None else [_graph_input(i) for i in body.inputs]


def _graph_input(item: InputBody) -> GraphInput:
    payload: Any = item.payload if "payload" in item.model_fields_set else UNSET
    if payload is not UNSET:
        check_profile(payload, "payload")
    return GraphInput(item.node or START, payload)
