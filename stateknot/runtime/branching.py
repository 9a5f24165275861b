"""What a branch or a fork takes along from the checkpoint it begins at.

Questions are open again there unless they had been answered before that checkpoint, and
their deadlines begin anew; a timer that stood there keeps its time; results that were
pending are reused. Everything gets a new id, and ids of the old branch stay with the
old branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import (
    UNSET,
    CheckpointSource,
    WaitKind,
    WaitStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stateknot.kernel.records import AttemptRecord, CheckpointRecord, WaitRecord
    from stateknot.kernel.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A new lineage and what it carries along."""

    lineage: int
    waits: tuple[WaitRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()


def carry_over(
    store: Store,
    record: CheckpointRecord,
    *,
    run_id: str,
    lineage: int,
    standing_at: int,
    new_id: Callable[[], str],
    keep_public_ids: bool = False,
) -> Branch:
    """The branch that begins behind `record`, driven by `run_id`.

    `standing_at` is the sequence of the checkpoint that the branch shows first: the
    record itself, or its copy in a fork. With `keep_public_ids` questions keep the id
    that people know them by.
    """
    pending = {a.id for a in with_ids(record.pending, record.step + 1)}
    gates = {name for activation in record.pending for name in activation.after}
    stood = store.list_waits_at(record)
    mine = [w for w in stood if w.activation_id in pending or w.public_id in gates]
    taken = {
        **{w.id: _carried_question(w, record, standing_at) for w in _asked_last(mine)},
        **{w.id: _carried_value(w, standing_at) for w in _handed_before(mine, record)},
        **{w.id: _carried_timer(w, standing_at) for w in _timers(store, record, stood)},
    }
    # In the order in which they came: a handler is given the newest answer.
    carried = [taken[wait.id] for wait in stood if wait.id in taken]
    attempts = [a for a in store.list_results_at(record) if a.activation_id in pending]
    return Branch(
        lineage=lineage,
        waits=tuple(
            replace(
                wait,
                id=new_id(),
                question_id=wait.public_id
                if keep_public_ids or wait.public_id in gates
                else wait.question_id,
                run_id=run_id,
                lineage=lineage,
            )
            for wait in carried
        ),
        attempts=tuple(
            replace(
                attempt,
                id=new_id(),
                lineage=lineage,
                sequence=standing_at,
                folded=False,
                usage=None,  # counted where it was used
            )
            for attempt in attempts
        ),
    )


def _asked_last(waits: Sequence[WaitRecord]) -> list[WaitRecord]:
    """Of questions asked again at a later boundary, the newest of each key."""
    questions = [wait for wait in waits if wait.kind is WaitKind.INTERRUPT]
    newest = {(w.activation_id, w.key, w.position): w for w in questions}
    return list(newest.values())


def _handed_before(
    waits: Sequence[WaitRecord], record: CheckpointRecord
) -> list[WaitRecord]:
    """Values handed in at earlier boundaries; one handed to `record` came after it."""
    values = [wait for wait in waits if wait.kind is WaitKind.VALUE]
    return [wait for wait in values if wait.sequence < record.sequence]


def _timers(
    store: Store, record: CheckpointRecord, waits: Sequence[WaitRecord]
) -> list[WaitRecord]:
    """The timers that `record` waits for: set by its boundary, or by that below edits.

    Whatever else is written behind a boundary is written when its timers are over.
    """
    boundary: CheckpointRecord | None = record
    while boundary is not None and boundary.source is CheckpointSource.UPDATE:
        boundary = store.find_checkpoint(
            record.thread_id, boundary.parent_id or "", record.namespace
        )
    return [
        wait
        for wait in waits
        if wait.kind is WaitKind.TIMER
        and boundary is not None
        and wait.sequence == boundary.sequence
    ]


def _carried_question(
    wait: WaitRecord, record: CheckpointRecord, standing_at: int
) -> WaitRecord:
    answered_at = wait.answered_sequence
    if answered_at is not None and answered_at < record.sequence:
        return replace(
            wait,
            sequence=standing_at - 1,
            status=WaitStatus.ANSWERED,
            answered_sequence=standing_at - 1,
        )
    return replace(
        wait,
        sequence=standing_at,
        status=WaitStatus.OPEN,
        answer=UNSET,
        answered_by=None,
        answered_sequence=None,
        due_in_seconds=_allowed_seconds(wait),
    )


def _allowed_seconds(wait: WaitRecord) -> float | None:
    """How long people had to answer when the question was first asked."""
    if wait.due_at is None or wait.asked_at is None:
        return None
    return (wait.due_at - wait.asked_at).total_seconds()


def _carried_value(wait: WaitRecord, standing_at: int) -> WaitRecord:
    return replace(wait, sequence=standing_at - 1, status=WaitStatus.ANSWERED)


def _carried_timer(wait: WaitRecord, standing_at: int) -> WaitRecord:
    return replace(
        wait, sequence=standing_at, status=WaitStatus.OPEN, due_in_seconds=None
    )
