"""A run's progress in a newcomer's words: what is new between two looks at it.

`describe` is pure; `look` only reads. When to look, and when to stop, is the business
of `following.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from project.audit.inspection import is_absent
from project.audit.state import Audit
from stateknot.models import NodeAttempt
from stateknot.selectors import get_run, get_state

DOING = {
    "collect": "listing the installed packages",
    "draft": "writing a first report",
    "approve": "putting together what a person must decide",
    "report": "writing the final report",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at a run found.

    `checkpoint` names the newest boundary and `edited` says that a person wrote it.
    `pending` are the nodes that are due. Of `packages` installed ones, `inspected` are
    done; `absent` ones are not installed. `questions` are the open ones, `failure` is
    empty unless the run stopped at one.
    """

    status: str
    checkpoint: str = ""
    edited: bool = False
    pending: tuple[str, ...] = ()
    packages: int = 0
    inspected: int = 0
    absent: int = 0
    questions: tuple[str, ...] = ()
    failure: str = ""
    reported: bool = False

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing more happens until somebody does something."""
        return self.status in {"completed", "failed", "cancelled", "interrupted"}


def look(run_id: str, thread_id: str) -> Look:
    """Look at the run and its newest boundary."""
    run = get_run(run_id)
    snapshot = get_state(thread_id)
    if snapshot is None:
        return Look(status=str(run.status))
    values: Any = snapshot.values
    audit = values if isinstance(values, Audit) else Audit.model_validate(values)
    due = Counter(snapshot.next_nodes)
    absent = sum(map(is_absent, audit.findings))
    return Look(
        status=str(run.status),
        checkpoint=snapshot.config["checkpoint_id"],
        edited=snapshot.metadata["source"] == "update",
        pending=tuple(due),
        packages=len(audit.findings) - absent + due["inspect"],
        inspected=_count_inspected(run_id),
        absent=absent,
        questions=tuple(i.payload["asked"] for i in snapshot.pending_interrupts),
        failure=_describe_failure(run) if run.status == "failed" else "",
        reported=audit.report is not None,
    )


def describe(before: Look | None, now: Look, rest: Look | None = None) -> list[str]:
    """Say what is new since the look before; nothing when nothing is.

    `rest` is the last look that found the run at rest: its questions are known.
    """
    if before == now:
        return []
    lines = []
    if before and now.reported and not before.reported:
        absent = f", {now.absent} not installed" if now.absent else ""
        lines.append(f"{count(now.packages, 'package')} inspected{absent}")
        lines.append("first report written")
    if now.is_at_rest:
        return [*lines, *_describe_rest(rest, now)]
    if "inspect" in now.pending:
        return [*lines, *_describe_inspection(before, now)]
    if before is None or before.pending != now.pending:
        lines += [DOING[node] for node in now.pending if node in DOING]
    return lines


def _describe_inspection(before: Look | None, now: Look) -> list[str]:
    """Say how many are left at the beginning or after a repair, then how many are done.

    Results that were found beside a failed inspection are kept, so that only what is
    left is inspected again.
    """
    if before and before.pending == now.pending and not before.is_at_rest:
        if before.inspected == now.inspected:
            return []
        return [f"{now.inspected} of {now.packages} inspected"]
    if before and before.is_at_rest:
        left = count(now.packages - now.inspected, "package")
        return [f"going on: inspecting {left} again, other results are kept"]
    packages = count(now.packages, "package")
    return [f"inspecting {packages}, each in an activation of its own"]


def _describe_rest(rest: Look | None, now: Look) -> list[str]:
    if now.status == "failed":
        if now.edited:
            return ["the state was edited; retry the run to go on"]
        return [f"stopped at {now.failure}"]
    if now.status == "interrupted":
        left = count(len(now.questions), "question")
        if rest and now.questions == rest.questions:
            return []
        if rest and set(now.questions) < set(rest.questions):
            return [f"answered; {left} left"]
        asked = [f"  {question}" for question in now.questions]
        return [f"waiting for a person: {left}", *asked]
    return [f"the run is {now.status}"]


def _describe_failure(run: Any) -> str:
    message = (run.error or {}).get("message", "no reason given")
    return f"{run.failed_node}: {message}"


def _count_inspected(run_id: str) -> int:
    """Count finished inspections, those of the superstep under way as well."""
    done = NodeAttempt.objects.filter(
        run_id=run_id, node_id="inspect", status="succeeded"
    )
    return done.values("activation_id").distinct().count()


def count(number: int, noun: str) -> str:
    """Give a number with its noun in the right form."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
