"""What is written into a thread by hand: an edit, a node marked as done.

Each names the checkpoint that it was made for, so that nobody overwrites what he has
not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.bodies import DoneBody, EditBody, parse
from stateknot.api.endpoint import Endpoint, require_allowed
from stateknot.api.problems import PreconditionRequiredError
from stateknot.api.projection import refuse_masks, show_edit
from stateknot.api.repeating import repeatable
from stateknot.api.threads import ETAG, etag_of
from stateknot.selectors.access import get_current_run
from stateknot.selectors.threads import find_codec
from stateknot.services import update_state
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The checkpoint the edit was made for, quoted; * for any.",
)


class ThreadState(Endpoint):
    """Edits the newest state."""

    tag = "threads"
    is_conditional = True
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "PATCH": ("stateknot.edit_state",)
    }

    @extend_schema(
        operation_id="edit_state",
        parameters=[ETAG, IF_MATCH],
        request=EditBody,
        responses=shapes.Edited,
    )
    def patch(self, request: Request, thread_id: str) -> Response:
        """Fold an update into the newest state, under the graph's own rules."""
        body = parse(EditBody, request.data)
        return _edit(request, thread_id, body.update, body.as_node)


class ThreadDone(Endpoint):
    """Marks a due node as done."""

    tag = "threads"
    is_conditional = True
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.edit_state",)
    }

    @extend_schema(
        operation_id="mark_done",
        parameters=[ETAG, IF_MATCH],
        request=DoneBody,
        responses=shapes.Edited,
    )
    @repeatable
    def post(self, request: Request, thread_id: str) -> Response:
        """Take an update as the result of a due node, such as the one that failed."""
        body = parse(DoneBody, request.data)
        return _edit(request, thread_id, body.update, body.node)


def _edit(
    request: Request, thread_id: str, update: Mapping[str, Any], as_node: str | None
) -> Response:
    run = get_current_run(request.user, thread_id)
    require_allowed(request, run.thread, "edit_state")
    expected = _expected(request, str(run.head_id))
    refuse_masks(update, find_codec(DjangoCheckpointer(), thread_id))
    written = update_state(
        thread_id,
        update,
        as_node=as_node,
        expected_checkpoint_id=expected,
        actor=request.user,
    )
    shown = show_edit(thread_id, written)
    headers = etag_of(shown.checkpoint_id)
    return Response(shown.model_dump(mode="json"), headers=headers)


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
