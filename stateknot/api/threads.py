"""Threads and their checkpoints, to read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.endpoint import Endpoint
from stateknot.api.paging import IdCursor, next_address
from stateknot.api.parameters import query_parameters
from stateknot.api.projection import (
    load_checkpoint,
    load_history,
    show_thread,
    show_thread_item,
)
from stateknot.api.queries import (
    HistoryQuery,
    StateQuery,
    ThreadQuery,
    read_query,
    split_pairs,
)
from stateknot.api.sparse import keep_fields
from stateknot.selectors.access import get_current_run, limit
from stateknot.selectors.threads import list_threads

if TYPE_CHECKING:
    from rest_framework.request import Request

ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=True,
    description="The newest checkpoint's id, quoted; give it as If-Match of an edit.",
)


def etag_of(checkpoint_id: str) -> dict[str, str]:
    """The header that names a thread's newest checkpoint."""
    return {"ETag": f'"{checkpoint_id}"'}


class ThreadList(Endpoint):
    """All threads."""

    tag = "threads"

    @extend_schema(
        operation_id="list_threads",
        parameters=query_parameters(ThreadQuery),
        responses=shapes.ThreadPage,
    )
    def get(self, request: Request) -> Response:
        """List threads with their current runs, newest first."""
        query = read_query(ThreadQuery, request)
        rows = list_threads(
            graph_id=query.graph,
            status=query.status and query.status.value,
            since=query.since,
            metadata=split_pairs(query.metadata),
        )
        pages = IdCursor(query.limit)
        seen = limit(rows, request.user, thread="pk")
        found = pages.paginate_queryset(seen, request, view=self)
        page = shapes.ThreadPage(
            next=pages.get_next_link(),
            previous=pages.get_previous_link(),
            results=[show_thread_item(thread) for thread in found or ()],
        )
        return Response(page.model_dump(mode="json"))


class ThreadDetail(Endpoint):
    """One thread, as it stands."""

    tag = "threads"

    @extend_schema(
        operation_id="get_thread",
        parameters=[*query_parameters(StateQuery), ETAG],
        responses=shapes.Thread,
    )
    def get(self, request: Request, thread_id: str) -> Response:
        """Read the newest state, what is due next, the open questions and the run."""
        query = read_query(StateQuery, request)
        run = get_current_run(request.user, thread_id)
        [checkpoint] = keep_fields([load_checkpoint(thread_id)], query.wanted)
        thread = show_thread(run, checkpoint)
        headers = etag_of(thread.checkpoint_id)
        return Response(thread.model_dump(mode="json"), headers=headers)


class CheckpointList(Endpoint):
    """The history of a thread."""

    tag = "threads"

    @extend_schema(
        operation_id="list_checkpoints",
        parameters=query_parameters(HistoryQuery),
        responses=shapes.CheckpointPage,
    )
    def get(self, request: Request, thread_id: str) -> Response:
        """List the newest checkpoint and its ancestors, newest first."""
        query = read_query(HistoryQuery, request)
        get_current_run(request.user, thread_id)
        before = None if query.before is None else str(query.before)
        if before is not None:
            load_checkpoint(thread_id, before)
        found = load_history(thread_id, limit=query.limit + 1, before=before)
        shown, more = found[: query.limit], len(found) > query.limit
        page = shapes.CheckpointPage(
            next=next_address(request, before=shown[-1].checkpoint_id)
            if more
            else None,
            results=keep_fields(shown, query.wanted),
        )
        return Response(page.model_dump(mode="json"))


class CheckpointDetail(Endpoint):
    """One checkpoint of a thread."""

    tag = "threads"

    @extend_schema(
        operation_id="get_checkpoint",
        parameters=query_parameters(StateQuery),
        responses=shapes.Checkpoint,
    )
    def get(self, request: Request, thread_id: str, checkpoint_id: UUID) -> Response:
        """Read the state at a boundary, and what was due there."""
        query = read_query(StateQuery, request)
        get_current_run(request.user, thread_id)
        found = load_checkpoint(thread_id, str(checkpoint_id))
        [checkpoint] = keep_fields([found], query.wanted)
        return Response(checkpoint.model_dump(mode="json"))
