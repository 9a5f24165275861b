"""What the memory store keeps of a thread: its checkpoints, runs and waits.

The class changes under the store's lock only; the records it hands out are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stateknot.kernel.records import (
    CheckpointRecord,
    RunRecord,
)
from stateknot.kernel.vocabulary import (
    CheckpointSource,
    WaitKind,
    WaitStatus,
)
from stateknot.kernel.writes import CheckpointDraft

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from stateknot.kernel.memory_rows import MemoryRun
    from stateknot.kernel.records import Namespace, WaitRecord
    from stateknot.kernel.undo import Undo
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import Admission


@dataclass(slots=True)
class MemoryThread:
    """The checkpoints (by namespace, in order), runs and waits of one thread."""

    id: str
    graph_id: str
    undo: Undo
    checkpoints: dict[Namespace, list[CheckpointRecord]] = field(default_factory=dict)
    runs: list[MemoryRun] = field(default_factory=list)
    waits: dict[str, WaitRecord] = field(default_factory=dict)
    current: dict[Namespace, MemoryRun] = field(default_factory=dict)

    def find(
        self, namespace: Namespace, checkpoint_id: str | None
    ) -> CheckpointRecord | None:
        """The named checkpoint of the namespace, or its newest."""
        records = self.checkpoints.get(namespace, [])
        if checkpoint_id is None:
            return self._head(namespace, records)
        return next((r for r in reversed(records) if r.id == checkpoint_id), None)

    def _head(
        self, namespace: Namespace, records: list[CheckpointRecord]
    ) -> CheckpointRecord | None:
        run = self.current.get(namespace)
        if run is None:
            return records[-1] if records else None
        head = run.record.head_id
        return next((r for r in reversed(records) if r.id == head), None)

    def walk(
        self, namespace: Namespace, limit: int | None, before: str | None
    ) -> list[CheckpointRecord]:
        """Ancestors of the newest checkpoint, or of `before`, newest first."""
        by_id = {record.id: record for record in self.checkpoints.get(namespace, [])}
        start = self.find(namespace, before)
        if start is None:
            return []
        current = start.parent_id if before else start.id
        found: dict[str, CheckpointRecord] = {}
        while current in by_id and current not in found:
            if limit is not None and len(found) >= limit:
                break
            found[current] = by_id[current]
            current = by_id[current].parent_id or ""
        return list(found.values())

    def last_sequence(self, namespace: Namespace) -> int:
        """The sequence of the newest record, or -1."""
        records = self.checkpoints.get(namespace)
        return records[-1].sequence if records else -1

    def enter(self, run: MemoryRun) -> None:
        """Make `run` the one that the thread's head follows."""
        if run not in self.runs:
            self.undo.add(self.runs, run)
        self.undo.put(self.current, run.record.namespace, run)

    def holding_run(self, namespace: Namespace) -> RunRecord | None:
        """The run that keeps others off the thread, or None."""
        held = (run.record for run in self.runs if run.record.namespace == namespace)
        return next((record for record in held if record.status.is_holding), None)

    def input_draft(self, admission: Admission) -> CheckpointDraft:
        """The input record of a run that begins now, behind the head."""
        previous = self.find(admission.namespace, None)
        sequence = self.last_sequence(admission.namespace) + 1
        return CheckpointDraft(
            id=admission.checkpoint_id,
            sequence=sequence,
            lineage=sequence,
            parent_id=previous.id if previous else None,
            step=0,
            source=CheckpointSource.INPUT,
            delta=admission.delta,
            pending=admission.pending,
            namespace=admission.namespace,
        )

    def append(
        self, run_id: str | None, draft: CheckpointDraft, at: datetime
    ) -> CheckpointRecord:
        """Put the draft's record together and keep it."""
        records = self.checkpoints.setdefault(draft.namespace, [])
        base = {} if draft.is_base else _values_of(records, draft.parent_id)
        record = CheckpointRecord(
            id=draft.id,
            thread_id=self.id,
            run_id=run_id,
            namespace=draft.namespace,
            sequence=draft.sequence,
            lineage=draft.lineage,
            parent_id=draft.parent_id,
            step=draft.step,
            source=draft.source,
            values=draft.delta.apply(base),
            pending=draft.pending,
            completed=tuple(activation.id for activation in draft.completed),
            joins=draft.joins,
            metadata=dict(draft.metadata),
            created_at=at,
        )
        self.undo.add(records, record)
        return record

    def add_waits(
        self, run: RunRecord, waits: Sequence[WaitRecord], at: datetime
    ) -> None:
        """Keep new waits, stamped with the run."""
        for wait in waits:
            due = wait.due_at
            if wait.due_in_seconds is not None:
                due = at + timedelta(seconds=wait.due_in_seconds)
            kept = replace(
                wait, thread_id=run.thread_id, run_id=run.id, asked_at=at, due_at=due
            )
            self.undo.put(self.waits, wait.id, kept)

    def open_timers(self, run: RunRecord) -> list[WaitRecord]:
        """The timers that a run still waits for."""
        return [
            wait
            for wait in self.waits.values()
            if wait.run_id == run.id
            and wait.kind is WaitKind.TIMER
            and wait.status is WaitStatus.OPEN
        ]

    def last_timer(self, run: RunRecord) -> datetime | None:
        """When the last open timer of a run is due."""
        dues = (wait.due_at for wait in self.open_timers(run))
        return max((due for due in dues if due is not None), default=None)

    def set_waits(self, wait_ids: Sequence[str], status: WaitStatus) -> None:
        """Move waits on to `status`."""
        for wait_id in wait_ids:
            self.keep_wait(replace(self.waits[wait_id], status=status))

    def keep_wait(self, wait: WaitRecord) -> None:
        """Keep a wait that changed."""
        self.undo.put(self.waits, wait.id, wait)

    def close_waits_of(self, run: RunRecord) -> list[str]:
        """Close what a run still asks; gives the ids of the open ones."""
        mine = [wait for wait in self.waits.values() if wait.run_id == run.id]
        standing = [wait for wait in mine if wait.status is not WaitStatus.CLOSED]
        self.set_waits([wait.id for wait in standing], WaitStatus.CLOSED)
        return [wait.id for wait in standing if wait.status is WaitStatus.OPEN]


def _values_of(
    records: list[CheckpointRecord], parent_id: str | None
) -> dict[str, JsonValue]:
    parent = next((r for r in reversed(records) if r.id == parent_id), None)
    return dict(parent.values) if parent else {}
