"""A run's progress in a newcomer's words: what is new between two looks at it.

`describe` is pure; `look` asks StateKnot's selectors and nothing else. When to look,
and when to stop, is the command's business.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from project.audit.state import Audit
from stateknot.selectors import get_run, get_state

DOING = {
    "collect": "listing the installed packages",
    "inspect": "inspecting {count} packages, each in an activation of its own",
    "draft": "writing a first report",
    "approve": "putting together what a person must decide",
    "report": "writing the final report",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at a run found.

    `questions` are the open ones, `failure` is empty unless the run stopped at one,
    `pending` counts the activations due by node.
    """

    status: str
    inspected: int = 0
    pending: tuple[tuple[str, int], ...] = ()
    questions: tuple[str, ...] = ()
    failure: str = ""
    reported: bool = False

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing more happens until somebody does something."""
        return self.status in {"completed", "failed", "cancelled", "interrupted"}


def look(run_id: str, thread_id: str) -> Look:
    """Look at the run and its newest boundary."""
    status = str(get_run(run_id).status)
    snapshot = get_state(thread_id)
    if snapshot is None:
        return Look(status=status)
    values: Any = snapshot.values
    audit = values if isinstance(values, Audit) else Audit.model_validate(values)
    return Look(
        status=status,
        inspected=len(audit.findings),
        pending=tuple(Counter(snapshot.next_nodes).items()),
        questions=tuple(
            interrupt.payload["question"] for interrupt in snapshot.pending_interrupts
        ),
        failure=_describe_failure(snapshot.metadata) if status == "failed" else "",
        reported=audit.report is not None,
    )


def describe(before: Look | None, now: Look) -> list[str]:
    """Say what is new since the look before; nothing when nothing is."""
    if before == now:
        return []
    lines = []
    if before and now.reported and not before.reported:
        lines.append(f"{now.inspected} packages inspected, first report written")
    if now.is_at_rest:
        return [*lines, *_describe_rest(now)]
    if before is None or before.pending != now.pending:
        lines += [
            DOING[node].format(count=count)
            for node, count in now.pending
            if node in DOING
        ]
    return lines


def _describe_rest(now: Look) -> list[str]:
    if now.status == "failed":
        return [f"stopped: {now.failure}"]
    if now.status == "interrupted":
        asked = [f"  {question}" for question in now.questions]
        return [f"waiting for a person: {_count(len(now.questions))}", *asked]
    return [f"the run is {now.status}"]


def _describe_failure(metadata: dict[str, Any]) -> str:
    error = metadata.get("error") or {}
    message = error.get("message", "") if isinstance(error, dict) else str(error)
    return f"{metadata.get('failed_node')}: {message}"


def _count(number: int) -> str:
    return f"{number} question{'' if number == 1 else 's'}"
