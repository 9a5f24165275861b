"""What is done to a thread: resume, retry, edit.

Going on needs `resume_run`, an answer needs `answer_wait`; an answer given at an older
checkpoint is both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.bodies import EditBody, ResumeBody, RetryBody, parse
from stateknot.api.endpoint import Endpoint, require_allowed, require_permissions
from stateknot.api.problems import PreconditionRequiredError
from stateknot.api.projection import (
    load_checkpoint,
    refuse_masks,
    show_edit,
    show_run,
)
from stateknot.api.questions import choose_question
from stateknot.api.repeating import repeatable
from stateknot.api.threads import ETAG, etag_of
from stateknot.kernel.vocabulary import UNSET
from stateknot.selectors.access import get_current_run
from stateknot.selectors.threads import find_codec
from stateknot.services import resume_run, retry_run, update_state
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from rest_framework.request import Request


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


class ThreadState(Endpoint):
    """Edits the newest state."""

    tag = "threads"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "PATCH": ("stateknot.edit_state",)
    }

    @extend_schema(
        operation_id="edit_state",
        parameters=[
            ETAG,
            OpenApiParameter(
                "If-Match",
                str,
                OpenApiParameter.HEADER,
                required=True,
                description="The checkpoint the edit was made for, quoted; * for any.",
            ),
        ],
        request=EditBody,
        responses=shapes.Edited,
    )
    def patch(self, request: Request, thread_id: str) -> Response:
        """Fold an update into the newest state, under the graph's own rules."""
        body = parse(EditBody, request.data)
        run = get_current_run(request.user, thread_id)
        require_allowed(request, run.thread, "edit_state")
        expected = _expected(request, str(run.head_id))
        refuse_masks(body.update, find_codec(DjangoCheckpointer(), thread_id))
        written = update_state(
            thread_id,
            body.update,
            as_node=body.as_node,
            expected_checkpoint_id=expected,
            actor=request.user,
        )
        shown = show_edit(thread_id, written)
        headers = etag_of(shown.checkpoint_id)
        return Response(shown.model_dump(mode="json"), headers=headers)


def _needed(body: ResumeBody) -> list[str]:
    is_answer = body.has_value or body.interrupt_id is not None
    needed = ["answer_wait"] if is_answer else []
    if not is_answer or body.checkpoint_id is not None:
        needed.append("resume_run")
    return needed


def _expected(request: Request, head: str) -> str | None:
    """The checkpoint that the edit expects; None where any will do.

    Raises PreconditionRequiredError, or ParseError for a header without a tag.
    """
    given: Any = request.headers.get("If-Match")
    if given is None:
        raise PreconditionRequiredError(
            "name the checkpoint this edit was made for: give the ETag of the thread "
            "as If-Match"
        )
    # A proxy that compresses weakens tags; ours are unique ids, so that costs nothing.
    tags = [tag.removeprefix("W/") for tag in parse_etags(given)]
    if not tags:
        raise ParseError(f'If-Match is {given!r}; an entity tag is quoted: "..."')
    if "*" in tags:
        return None
    ids = [tag.strip('"') for tag in tags]
    return head if head in ids else ids[0]
