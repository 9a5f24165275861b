"""What stands on the page of a run, gathered for its template.

Every state and pending result passes `masking.py` on its way. The template is
`templates/admin/stateknot/run/page.html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.template.defaultfilters import linebreaks_filter

from stateknot.admin.answer_form import AnswerForm
from stateknot.admin.json_diff import compare_states
from stateknot.admin.json_tree import pretty, render_tree
from stateknot.admin.presenting import (
    describe_error,
    describe_run,
    join_names,
    render_age,
    render_status,
)
from stateknot.admin.run_picture import picture_run
from stateknot.admin.tokens import sign_shown
from stateknot.admin.verbs import list_offered
from stateknot.errors import OutcomeUnknownError, RecursionLimitError
from stateknot.kernel.profile import decode
from stateknot.kernel.vocabulary import RunStatus
from stateknot.selectors.masking import show_result, show_values
from stateknot.selectors.run_page import (
    find_masking_codec,
    find_parent,
    find_standpoint,
    list_attempts,
    list_boundaries,
    list_journal,
    node_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from stateknot.admin.json_diff import Differences
    from stateknot.kernel.records import AttemptRecord, JournalRecord, WaitRecord
    from stateknot.kernel.state import StateCodec
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.models import Run
    from stateknot.selectors.run_page import BoundaryRow, Standpoint

LIMIT_CODE = RecursionLimitError.code


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBlock:
    """An open question as the page shows it."""

    wait: WaitRecord
    payload: SafeString
    age: SafeString
    schema: str
    form: AnswerForm


def gather_page(
    request: HttpRequest, run: Run, answers: Mapping[str, AnswerForm]
) -> dict[str, Any]:
    """The template's context; `answers` are forms that came back, by wait."""
    head = find_standpoint(run)
    asked_for = request.GET.get("at")
    shown = find_standpoint(run, asked_for) if asked_for else head
    codec = find_masking_codec(run)
    params = request.GET
    context: dict[str, Any] = {
        "run": run,
        "status": render_status(run.status, run.get_status_display()),
        "sentence": describe_run(run, head),
        "head": head,
        "shown": shown,
        "is_masked": codec is None,
        "offered": list_offered(request, run, head),
        "is_current": run.thread.current_run_id == run.id and not run.namespace,
        "is_moving": run.status in MOVING,
        "is_limited": run.error_code == LIMIT_CODE,
        "is_unknown": run.error_code == OutcomeUnknownError.code,
        "metadata": render_tree(run.metadata) if run.metadata else "",
        "seen": tag_of(run),
        "token": sign_shown(run, str(run.head_id)),
        "questions": _questions(head, answers),
        "picture": picture_run(run, head),
        "tried_node": params.get("node", ""),
        "boundaries": list_boundaries(run, params.get("boundaries_before")),
        "attempts": list_attempts(
            run, params.get("attempts_before"), node=params.get("node")
        ),
        "journal": list_journal(run, params.get("journal_before")),
    }
    if shown is not None:
        context["state"] = render_tree(show_values(shown.record.values, codec))
        context["next_nodes"] = join_names(shown.record.next_nodes)
        context["differences"] = _differences(shown, codec)
    if head is not None:
        context["results"] = [
            (item, render_tree(show_result(item.result, codec)))
            for item in head.results
        ]
    _add_rows(context)
    if run.output is not None:
        context["output"] = render_tree(decode(run.output))
    return context


def tag_of(run: Run) -> str:
    """The ETag of a run: whatever its page shows is journalled or moves the head."""
    return f'"{run.status}.{run.next_journal}.{run.head_id}"'


MOVING = (
    RunStatus.PENDING,
    RunStatus.RUNNING,
    RunStatus.WAITING,
    RunStatus.CLOSING,
)
"""Statuses in which the page looks for changes by itself."""


def _differences(at: Standpoint, codec: StateCodec | None) -> Differences | None:
    """What the boundary that is shown changed; None where nothing was before it, or
    nobody here knows which fields are secret."""
    before = find_parent(at) if codec else None
    if before is None:
        return None
    values = (before.values, at.record.values)
    return compare_states(*values, *(show_values(v, codec) for v in values))


def _questions(
    at: Standpoint | None, answers: Mapping[str, AnswerForm]
) -> list[QuestionBlock]:
    return [
        QuestionBlock(
            wait=wait,
            payload=_payload(wait.payload),
            age=render_age(wait.asked_at),
            schema=pretty(dict(wait.schema)) if wait.schema else "",
            form=answers.get(wait.id) or AnswerForm(wait),
        )
        for wait in (at.questions if at else ())
    ]


def _payload(payload: JsonValue) -> SafeString:
    """A question that is one text is shown as that, not as JSON."""
    if isinstance(payload, str):
        return linebreaks_filter(payload)
    return render_tree(payload)


def _add_rows(context: dict[str, Any]) -> None:
    """The rows of timeline, attempts and journal, each with its wording."""
    context["boundary_rows"] = [_boundary(row) for row in context["boundaries"].rows]
    context["attempt_rows"] = [_attempt(row) for row in context["attempts"].rows]
    context["journal_rows"] = [_entry(row) for row in context["journal"].rows]


def _boundary(row: BoundaryRow) -> dict[str, Any]:
    return {
        "row": row,
        "completed": join_names(row.completed) if row.completed else "",
        "next": join_names(row.next_nodes) if row.next_nodes else "",
    }


def _attempt(row: AttemptRecord) -> dict[str, Any]:
    seconds = None
    if row.ended_at is not None:
        seconds = (row.ended_at - row.started_at).total_seconds()
    return {
        "row": row,
        "step": row.activation_id.split(":", 1)[0],
        "node": node_of(row.activation_id),
        "seconds": seconds,
        "summary": describe_error(row.error) if row.error else "",
    }


def _entry(row: JournalRecord) -> dict[str, Any]:
    events = [
        {"event": event, "data": pretty(dict(event.data)) if event.data else ""}
        for event in row.events
    ]
    return {
        "row": row,
        "events": events,
        "kinds": join_names([e.kind for e in row.events]),
    }
