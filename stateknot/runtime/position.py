"""Where a drive stands: the head's state and list, and what was kept for it.

`load_position` reads it from the store, with a fixed number of reads whatever the
thread's length. A drive moves it on from boundary to boundary without reading again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.errors import CheckpointError
from stateknot.kernel.records import JoinState
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import AttemptStatus, WaitKind, WaitStatus

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.records import (
        Activation,
        AttemptRecord,
        RunRecord,
        WaitRecord,
    )
    from stateknot.kernel.store import Store
    from stateknot.kernel.writes import Admission
    from stateknot.runtime.execution import ChildRun
    from stateknot.runtime.ran import Ran


@dataclass(slots=True, kw_only=True)
class Position:
    """The head of a run while it is driven. Mutable; belongs to one drive.

    `run` is as it was claimed: where it stands by now is said here. `sequence` is that
    of the head, `written_id` the newest checkpoint that the store
    has (in `exit` mode it lies behind `head_id`). `results` and `waits` are by
    activation id, and so is how often each was tried before this drive (`tries` failed,
    `lost` went down with their worker). `spread` is what became of the activations that
    ran on several workers, `spread_runs` are their child runs.
    """

    run: RunRecord
    head_id: str
    sequence: int
    lineage: int
    step: int
    steps: int
    state: BaseModel
    pending: tuple[Activation, ...]
    joins: JoinState
    results: dict[str, AttemptRecord] = field(default_factory=dict)
    waits: dict[str, list[WaitRecord]] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    spread: dict[str, Ran] = field(default_factory=dict)
    spread_runs: list[ChildRun] = field(default_factory=list)

    def open_timers(self) -> list[WaitRecord]:
        """The timers that were set and not closed since."""
        found = {
            wait.id: wait
            for waits in self.waits.values()
            for wait in waits
            if wait.kind is WaitKind.TIMER and wait.status is WaitStatus.OPEN
        }
        return list(found.values())

    def open_waits(self, activation_id: str) -> list[WaitRecord]:
        """The questions of an activation that have no answer yet."""
        return [
            w for w in self.waits.get(activation_id, ()) if w.status == WaitStatus.OPEN
        ]

    def answered_waits(self, activation_id: str) -> list[WaitRecord]:
        """The answers that came for an activation, in the order of their questions."""
        answered = (w for w in self.waits.get(activation_id, ()))
        return [w for w in answered if w.status != WaitStatus.OPEN]

    def all_open(self) -> list[WaitRecord]:
        """Every open question of the pending activations, in active order."""
        pending = with_ids(self.pending, self.step + 1)
        found = {w.id: w for a in pending for w in self.open_waits(a.id)}
        return list(found.values())

    def reload_waits(self, store: Store) -> None:
        """Read the questions and answers again."""
        self.waits = {}
        by_public_id: dict[str, WaitRecord] = {}
        for wait in store.list_waits(self.run.thread_id, self.run.namespace):
            if wait.lineage == self.lineage:
                self.waits.setdefault(wait.activation_id, []).append(wait)
                by_public_id[wait.public_id] = wait
        for activation in with_ids(self.pending, self.step + 1):
            for public_id in activation.after:
                if public_id in by_public_id:
                    gate = by_public_id[public_id]
                    self.waits.setdefault(activation.id, []).append(gate)


def fresh_position(
    blueprint: Blueprint, run: RunRecord, admission: Admission
) -> Position:
    """Where a run stands that this process admitted and claimed in one transaction.

    Nothing is read: nobody can have written behind it, and its lineage is new.
    """
    return Position(
        run=run,
        head_id=admission.checkpoint_id,
        sequence=run.sequence,
        lineage=run.lineage,
        step=0,
        steps=0,
        state=blueprint.fold.codec.load(admission.delta.changes),
        pending=admission.pending,
        joins=JoinState(),
    )


def load_position(store: Store, blueprint: Blueprint, run: RunRecord) -> Position:
    """Read where `run` stands. Raises StateError when its state no longer fits."""
    record = store.find_checkpoint(run.thread_id, run.head_id, run.namespace)
    if record is None:
        raise CheckpointError(
            f"run {run.id} stands at checkpoint {run.head_id}, which is missing from "
            f"thread {run.thread_id!r}"
        )
    position = Position(
        run=run,
        head_id=record.id,
        sequence=store.last_sequence(run.thread_id, run.namespace),
        lineage=run.lineage,
        step=record.step,
        steps=run.steps,
        state=blueprint.fold.codec.load(record.values),
        pending=record.pending,
        joins=record.joins,
        results={item.activation_id: item for item in store.list_results(run)},
    )
    position.reload_waits(store)
    position.tries = store.count_tries(run, position.sequence + 1)
    position.lost = store.count_tries(run, position.sequence + 1, AttemptStatus.LOST)
    return position
