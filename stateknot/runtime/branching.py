"""What a branch or a fork takes along from the checkpoint it begins at.

Questions are open again there unless they had been answered before that checkpoint;
results that were pending at it are reused. Everything gets a new id, and ids of the old
branch stay with the old branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import UNSET, WaitStatus

if TYPE_CHECKING:
    from collections.abc import Callable

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
    waits = [
        wait
        for wait in store.list_waits_at(record)
        if wait.activation_id in pending or wait.public_id in gates
    ]
    attempts = [a for a in store.list_results_at(record) if a.activation_id in pending]
    return Branch(
        lineage=lineage,
        waits=tuple(
            replace(
                _carried_wait(wait, record, standing_at),
                id=new_id(),
                question_id=wait.public_id
                if keep_public_ids or wait.public_id in gates
                else wait.question_id,
                run_id=run_id,
                lineage=lineage,
            )
            for wait in _asked_last(waits)
        ),
        attempts=tuple(
            replace(
                attempt,
                id=new_id(),
                lineage=lineage,
                sequence=standing_at,
                folded=False,
            )
            for attempt in attempts
        ),
    )


def _asked_last(waits: list[WaitRecord]) -> list[WaitRecord]:
    """Of questions asked again at a later boundary, the newest of each key."""
    newest = {(w.activation_id, w.key, w.position): w for w in waits}
    return list(newest.values())


def _carried_wait(
    wait: WaitRecord, record: CheckpointRecord, standing_at: int
) -> WaitRecord:
    answered_at = wait.answered_sequence
    is_answered = answered_at is not None and answered_at < record.sequence
    return replace(
        wait,
        sequence=standing_at,
        status=WaitStatus.ANSWERED if is_answered else WaitStatus.OPEN,
        answer=wait.answer if is_answered else UNSET,
        answered_by=wait.answered_by if is_answered else None,
        answered_sequence=standing_at - 1 if is_answered else None,
    )
