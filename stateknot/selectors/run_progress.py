"""How far a run is at each node of its graph: what its picture shows.

One query, however many attempts there are. Read `stateknot/pictures/sketch.py` for what
a state looks like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count

from stateknot.conf import get_settings
from stateknot.kernel.vocabulary import AttemptStatus, RunStatus
from stateknot.models import NodeAttempt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.models import Run
    from stateknot.selectors.run_page import Standpoint

UNREACHED = "unreached"
_FAILURES = (AttemptStatus.FAILED.value, AttemptStatus.LOST.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """`state` is one of done, running, failed, waiting and pending; `succeeded` and
    `failed` count attempts."""

    state: str
    succeeded: int = 0
    failed: int = 0


def list_progress(run: Run, head: Standpoint | None) -> dict[str, NodeProgress]:
    """How far each node is that was tried or is due, by id."""
    counts: dict[str, dict[str, int]] = {}
    rows = NodeAttempt.objects.using(get_settings().database).filter(run=run)
    grouped = rows.order_by().values_list("node_id", "status")
    for node, status, count in grouped.annotate(count=Count("id")):
        counts.setdefault(node, {})[status] = count
    due = set(head.record.next_nodes) if head else set()
    return {
        node: NodeProgress(
            state=_state(run, node, head, counts.get(node, {})),
            succeeded=counts.get(node, {}).get(AttemptStatus.SUCCEEDED.value, 0),
            failed=sum(counts.get(node, {}).get(status, 0) for status in _FAILURES),
        )
        for node in {*due, *counts, *filter(None, [run.failed_node])}
    }


def _state(
    run: Run, node: str, head: Standpoint | None, counts: Mapping[str, int]
) -> str:
    """The first that holds: what is due tells more than what was."""
    if run.status == RunStatus.FAILED and node == run.failed_node:
        return "failed"
    if head and node in head.record.next_nodes:
        return _state_of_due(run, node, head)
    if counts.get(AttemptStatus.SUCCEEDED.value):
        return "done"
    return "failed" if any(counts.get(status) for status in _FAILURES) else UNREACHED


def _state_of_due(run: Run, node: str, head: Standpoint) -> str:
    if node in {question.node_id for question in head.questions}:
        return "waiting"
    if node in {result.node_id for result in head.results}:
        return "done"
    match RunStatus(run.status):
        case RunStatus.RUNNING:
            return "running"
        case RunStatus.WAITING:
            return "waiting"
        case _:
            return "pending"
