"""What a command prints of a run: one sentence, then state, questions, boundaries.

The values are those of the API's shapes, so that secrets are masked in one place.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stateknot.api.projection import load_checkpoint, load_history, show_run
from stateknot.kernel.vocabulary import RunStatus
from stateknot.selectors import get_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.api import shapes
    from stateknot.models import Run

BOUNDARIES = 5
_LONGEST_LINE = 200

_SENTENCES = {
    RunStatus.PENDING: "waits for a worker",
    RunStatus.RUNNING: "is being driven",
    RunStatus.WAITING: "waits for a time to come",
    RunStatus.CLOSING: "is closing",
    RunStatus.COMPLETED: "is completed",
    RunStatus.CANCELLED: "was cancelled",
}


def describe(run: Run) -> dict[str, Any]:
    """What is told of a run, as JSON: itself, its checkpoint, its last boundaries.

    A run that waits for its thread has neither of them yet.
    """
    head = str(run.head_id)
    if get_state(run.thread.key, head) is None:
        shown = show_run(run)
        return {
            "run": shown.model_dump(mode="json"),
            "sentence": sentence(shown, 0),
            "checkpoint": None,
            "boundaries": [],
        }
    checkpoint = load_checkpoint(run.thread.key, head)
    earlier = load_history(run.thread.key, limit=BOUNDARIES - 1, before=head)
    shown = show_run(run, with_traceback=True)
    return {
        "run": shown.model_dump(mode="json"),
        "sentence": sentence(shown, len(checkpoint.questions)),
        "checkpoint": checkpoint.model_dump(mode="json"),
        "boundaries": [_boundary(c) for c in (checkpoint, *earlier)],
    }


def sentence(run: shapes.Run, questions: int) -> str:
    """How a run stands, in one sentence."""
    status = RunStatus(run.status)
    if status is RunStatus.INTERRUPTED:
        what = f"is paused at {_count(questions, 'open question')}"
    elif status is RunStatus.FAILED:
        what = f"failed at node {run.failed_node}" if run.failed_node else "failed"
    elif run.is_queued:
        what = "waits for its thread"
    else:
        what = _SENTENCES[status]
    by = f", started by {run.actor}" if run.actor else ""
    after = _count(run.steps, "superstep")
    return f"run {run.id} of {run.graph} {what} after {after}{by}"


def to_json(value: Any) -> str:
    """The text that `--json` prints."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def to_text(told: dict[str, Any]) -> str:
    """What `describe` tells, for people."""
    run, checkpoint = told["run"], told["checkpoint"]
    if checkpoint is None:
        return f"thread {run['thread_id']}: {told['sentence']}"
    parts = [
        f"thread {run['thread_id']}: {told['sentence']}",
        *_error(run["error"]),
        *_section("next", checkpoint["next_nodes"]),
        *_section("questions", map(_question, checkpoint["questions"])),
        "state:",
        *(f"  {line}" for line in to_json(checkpoint["state"]).splitlines()),
    ]
    if checkpoint["state_error"]:
        parts.append(f"  ({checkpoint['state_error']})")
    parts += _section("last boundaries", map(_line, told["boundaries"]))
    return "\n".join(parts)


def plan_text(plan: shapes.MovePlan) -> str:
    """What a move does, for people: what is renamed and what is gone first."""
    parts = [
        f"run {plan.run_id} of thread {plan.thread_id}",
        f"from {plan.from_digest}",
        f"to   {plan.to_digest}",
        *_section("renamed", [f"{a} -> {b}" for a, b in plan.renamed.items()]),
        *_section("removed nodes", plan.removed),
        *_section("new nodes", plan.added),
        *_section("joins that forget what arrived", plan.forgotten_joins),
        *_section("state fields with a new value", plan.changed_fields),
        *_section("state fields that are dropped", plan.dropped_fields),
        *_section("cannot be moved", plan.problems),
    ]
    if plan.from_digest == plan.to_digest:
        parts.append("the run stands on this revision already")
    return "\n".join(parts)


def _boundary(checkpoint: shapes.Checkpoint) -> dict[str, Any]:
    names = {"checkpoint_id", "step", "source", "next_nodes", "created_at"}
    return checkpoint.model_dump(mode="json", include=names)


def _line(boundary: dict[str, Any]) -> str:
    due = ", ".join(boundary["next_nodes"]) or "nothing"
    written = boundary["created_at"][:19].replace("T", " ")
    return (
        f"{boundary['checkpoint_id']}  {written}  step {boundary['step']}  "
        f"{boundary['source']}, next: {due}"
    )


def _question(question: dict[str, Any]) -> str:
    asked = json.dumps(question["payload"], ensure_ascii=False)
    return f"{question['id']}  {question['node']}  {_short(asked)}"


def _error(error: dict[str, Any] | None) -> list[str]:
    if error is None:
        return []
    kind = f"{error['type']}: " if error.get("type") else ""
    text = f"error: {error.get('code', '')}\n{kind}{error.get('message', '')}"
    return text.replace("\n", "\n  ").splitlines()


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return [f"{title}:", *found] if found else []


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
