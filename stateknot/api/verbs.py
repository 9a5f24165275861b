"""What is done to a thread: resume, retry, fork.

Going on needs `resume_run`, an answer needs `answer_wait`; an answer given at an older
checkpoint is both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.reverse import reverse

from stateknot.api import shapes
from stateknot.api.bodies import ForkBody, ResumeBody, RetryBody, parse
from stateknot.api.endpoint import Endpoint, require_allowed, require_permissions
from stateknot.api.projection import load_checkpoint, show_run, show_thread_item
from stateknot.api.questions import choose_question
from stateknot.api.repeating import repeatable
from stateknot.kernel.vocabulary import UNSET
from stateknot.models import Thread
from stateknot.selectors.access import find_thread, get_current_run
from stateknot.services import fork_thread, resume_run, retry_run

if TYPE_CHECKING:
    from rest_framework.request import Request


LOCATION = OpenApiParameter(
    "Location",
    str,
    OpenApiParameter.HEADER,
    response=True,
    description="The address of what was made.",
)


class ThreadResume(Endpoint):
    """Answers a question, or goes on from a checkpoint."""

    tag = "threads"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {}

    @extend_schema(
        operation_id="resume_run", request=ResumeBody, responses={202: shapes.Run}
    )
    @repeatable
    def post(self, request: Request, thread_id: str) -> Response:
        """Give an answer, or go on from a checkpoint, on the workers."""
        body = parse(ResumeBody, request.data)
        needed = _needed(body)
        require_permissions(request, *(f"stateknot.{verb}" for verb in needed))
        run = get_current_run(request.user, thread_id)
        require_allowed(request, run.thread, *needed)
        if body.checkpoint_id is not None:
            load_checkpoint(thread_id, body.checkpoint_id)
        question = body.interrupt_id
        if body.has_value and question is None:
            question = choose_question(thread_id, body.checkpoint_id)
            if question is None and "resume_run" not in needed:
                # Nothing is asked: the value only makes a run go on that stood still.
                require_permissions(request, "stateknot.resume_run")
                require_allowed(request, run.thread, "resume_run")
        run = resume_run(
            thread_id,
            body.value if body.has_value else UNSET,
            interrupt_id=question,
            checkpoint_id=body.checkpoint_id,
            step_limit=body.step_limit,
            actor=request.user,
        )
        return Response(show_run(run).model_dump(mode="json"), status=202)


class ThreadRetry(Endpoint):
    """Runs again what failed, or now what waits for a timer or a retry."""

    tag = "threads"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.retry_run",)
    }

    @extend_schema(
        operation_id="retry_run", request=RetryBody, responses={202: shapes.Run}
    )
    @repeatable
    def post(self, request: Request, thread_id: str) -> Response:
        """Run again what failed, or now what waits, from the newest checkpoint."""
        body = parse(RetryBody, request.data or {})
        run = get_current_run(request.user, thread_id)
        require_allowed(request, run.thread, "retry_run")
        run = retry_run(
            thread_id,
            step_limit=body.step_limit,
            rerun_unknown=body.rerun_unknown,
            actor=request.user,
        )
        return Response(show_run(run).model_dump(mode="json"), status=202)


class ThreadFork(Endpoint):
    """Begins another thread where this one stands or stood."""

    tag = "threads"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.fork_thread",)
    }

    @extend_schema(
        operation_id="fork_thread",
        parameters=[LOCATION],
        request=ForkBody,
        responses={201: shapes.ThreadItem},
    )
    @repeatable
    def post(self, request: Request, thread_id: str) -> Response:
        """Copy a checkpoint, its questions and children; the copy waits to be resumed.

        A target that exists gets a new lineage, unless a run holds it.
        """
        body = parse(ForkBody, request.data or {})
        run = get_current_run(request.user, thread_id)
        target = body.thread_id and find_thread(request.user, body.thread_id)
        new = Thread(key=body.thread_id or "", graph_id=run.graph_id)
        for thread in (run.thread, target or new):
            require_allowed(request, thread, "fork_thread")
        if body.checkpoint_id is not None:
            load_checkpoint(thread_id, body.checkpoint_id)
        forked = fork_thread(
            thread_id,
            body.thread_id,
            checkpoint_id=body.checkpoint_id,
            actor=request.user,
        )
        shown = show_thread_item(forked).model_dump(mode="json")
        address = reverse("stateknot-api:thread", args=[forked.key], request=request)
        return Response(shown, status=201, headers={"Location": address})


def _needed(body: ResumeBody) -> list[str]:
    is_answer = body.has_value or body.interrupt_id is not None
    needed = ["answer_wait"] if is_answer else []
    if not is_answer or body.checkpoint_id is not None:
        needed.append("resume_run")
    return needed
