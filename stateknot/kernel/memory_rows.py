"""What the memory store keeps of a thread and of a run.

The classes change under the store's lock only; the records they hand out are frozen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from stateknot.kernel.once import lost_if_begun
from stateknot.kernel.records import (
    CheckpointRecord,
    Event,
    Fence,
    JournalRecord,
    RunRecord,
)
from stateknot.kernel.vocabulary import (
    AttemptStatus,
    CheckpointSource,
    RunStatus,
    WaitKind,
    WaitStatus,
)
from stateknot.kernel.writes import CheckpointDraft

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from stateknot.kernel.records import AttemptRecord, Namespace, WaitRecord
    from stateknot.kernel.undo import Undo
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import (
        Admission,
        Boundary,
        Deferral,
        Reopening,
        ThreadFork,
    )


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


@dataclass(slots=True, eq=False)
class MemoryRun:
    """A run's record with its lease, attempts and journal."""

    record: RunRecord
    undo: Undo
    holder: str | None = None
    attempts: dict[str, AttemptRecord] = field(default_factory=dict)
    journal: list[JournalRecord] = field(default_factory=list)
    event_count: int = 0

    @classmethod
    def admitted(
        cls, thread: MemoryThread, admission: Admission, at: datetime
    ) -> MemoryRun:
        """A pending run whose input record names the previous head as its parent."""
        namespace = admission.namespace
        previous = thread.find(namespace, None)
        events = admission.events + superseded(thread, namespace)
        sequence = thread.last_sequence(namespace) + 1
        draft = CheckpointDraft(
            id=admission.checkpoint_id,
            sequence=sequence,
            lineage=sequence,
            parent_id=previous.id if previous else None,
            step=0,
            source=CheckpointSource.INPUT,
            delta=admission.delta,
            pending=admission.pending,
            namespace=namespace,
        )
        thread.append(admission.run_id, draft, at)
        record = _new_record(thread.id, admission, draft, at)
        run = cls(record=record, undo=thread.undo)
        run.note(events, at, draft.id, admission.actor)
        return run

    @classmethod
    def forked(cls, thread: MemoryThread, fork: ThreadFork, at: datetime) -> MemoryRun:
        """A run that stands at a copied checkpoint until somebody resumes it."""
        thread.append(None, fork.checkpoint, at)
        record = _new_record(thread.id, fork.admission, fork.checkpoint, at)
        idle = RunStatus.INTERRUPTED if fork.checkpoint.pending else RunStatus.COMPLETED
        run = cls(record=replace(record, status=idle), undo=thread.undo)
        run.note(fork.admission.events, at, fork.checkpoint.id, fork.admission.actor)
        return run

    def change(self, **changes: Any) -> None:
        """Change fields of the record."""
        self.undo.set(self, "record", replace(self.record, **changes))

    def hold(self, holder: str | None) -> None:
        """Note who drives the run; None for nobody."""
        self.undo.set(self, "holder", holder)

    def take(self, holder: str, at: datetime) -> Fence:
        """Begin a drive under the next epoch."""
        self.hold(holder)
        self.change(
            status=RunStatus.RUNNING,
            epoch=self.record.epoch + 1,
            wake_at=None,
            started_at=self.record.started_at or at,
        )
        return Fence(run_id=self.record.id, epoch=self.record.epoch, holder=holder)

    def record_attempts(self, attempts: Sequence[AttemptRecord]) -> None:
        """Keep attempts, once each; one that was begun ends once."""
        for attempt in attempts:
            known = self.attempts.get(attempt.id, attempt)
            if attempt.closes and known.status is AttemptStatus.RUNNING:
                known = attempt
            self.undo.put(self.attempts, attempt.id, replace(known, closes=False))

    def fold_attempts(self, attempt_ids: Sequence[str], at: datetime) -> None:
        """Use pending results up; a start that nobody ended is lost."""
        for attempt_id in attempt_ids:
            folded = replace(lost_if_begun(self.attempts[attempt_id], at), folded=True)
            self.undo.put(self.attempts, attempt_id, folded)

    def note(
        self,
        events: tuple[Event, ...],
        at: datetime,
        checkpoint_id: str | None = None,
        actor: str = "",
    ) -> None:
        """Append a journal row, if there is anything to tell."""
        if not events:
            return
        row = JournalRecord(
            run_id=self.record.id,
            number=len(self.journal),
            first_event=self.event_count,
            events=events,
            recorded_at=at,
            checkpoint_id=checkpoint_id,
            actor=actor,
        )
        self.undo.add(self.journal, row)
        self.undo.set(self, "event_count", self.event_count + len(events))

    def note_answer(self, wait: WaitRecord, actor: str, at: datetime) -> None:
        """Journal that a question was answered, by whom."""
        event = Event(kind="wait.answered", node=wait.node_id, data={"wait": wait.id})
        self.note((event,), at, None, actor)

    def is_due(self, at: datetime) -> bool:
        """Whether there is something to drive at `at`."""
        status, wake_at = self.record.status, self.record.wake_at
        if self.record.is_to_be_cancelled:
            return False
        if status is RunStatus.WAITING:
            return wake_at is not None and wake_at <= at
        return status in (RunStatus.PENDING, RunStatus.RUNNING)

    def list_visits(self) -> dict[tuple[int, str], str]:
        """The node of each activation that was tried."""
        return {(a.lineage, a.activation_id): a.node_id for a in self.attempts.values()}

    def count_tries(
        self, lineage: int, sequence: int, status: AttemptStatus
    ) -> dict[str, int]:
        """How often each activation was tried for the boundary at `sequence`."""
        return dict(
            Counter(
                attempt.activation_id
                for attempt in self.attempts.values()
                if attempt.lineage == lineage
                and attempt.sequence == sequence
                and attempt.status is status
            )
        )

    def defer(self, deferral: Deferral, at: datetime) -> None:
        """Wait for a superstep that was put off."""
        self.end(RunStatus.WAITING, None, at)
        self.change(
            wake_at=at + timedelta(seconds=deferral.delay_seconds),
            active_seconds=self.record.active_seconds + deferral.active_seconds,
        )

    def advance(
        self, boundary: Boundary, at: datetime, last_timer: datetime | None
    ) -> None:
        """Move to a committed boundary."""
        self.move_head(boundary.checkpoint)
        self.change(
            steps=boundary.steps,
            active_seconds=self.record.active_seconds + boundary.active_seconds,
            error=boundary.error,
            output=boundary.output,
            wake_at=last_timer if boundary.status is RunStatus.WAITING else None,
        )
        if boundary.status != RunStatus.RUNNING:
            self.end(boundary.status, boundary.error, at)

    def move_head(self, draft: CheckpointDraft) -> None:
        """Let the head follow the branch that was written."""
        self.change(head_id=draft.id, sequence=draft.sequence, lineage=draft.lineage)

    def end(
        self, status: RunStatus, error: Mapping[str, JsonValue] | None, at: datetime
    ) -> None:
        """Stop being driven, for now or for good."""
        self.hold(None)
        ended = at if status.is_terminal else None
        self.change(status=status, error=error, ended_at=ended)

    def reopen(self, reopening: Reopening, at: datetime) -> None:
        """Become pending again, from the head or from the checkpoint named."""
        record = self.record
        self.change(
            status=RunStatus.PENDING,
            error=None,
            output=None,
            ended_at=None,
            wake_at=None,
            head_id=reopening.head_id or record.head_id,
            lineage=record.lineage if reopening.lineage is None else reopening.lineage,
            step_limit=reopening.step_limit or record.step_limit,
        )
        self.note(reopening.events, at, None, reopening.actor)


def superseded(thread: MemoryThread, namespace: Namespace) -> tuple[Event, ...]:
    """Close what an ended run still asked, and say so: it is not dropped silently."""
    previous = thread.current.get(namespace)
    ids = thread.close_waits_of(previous.record) if previous else []
    return (Event(kind="waits.superseded", data={"waits": ids}),) if ids else ()


def _new_record(
    thread_id: str, admission: Admission, draft: CheckpointDraft, at: datetime
) -> RunRecord:
    return RunRecord(
        id=admission.run_id,
        thread_id=thread_id,
        graph_id=admission.graph_id,
        digest=admission.digest,
        status=RunStatus.PENDING,
        head_id=draft.id,
        sequence=draft.sequence,
        lineage=draft.lineage,
        steps=0,
        namespace=admission.namespace,
        parent_run_id=admission.parent_run_id,
        root_run_id=admission.root_run_id or admission.run_id,
        step_limit=admission.step_limit,
        actor=admission.actor,
        metadata=admission.metadata,
        created_at=at,
    )


def _values_of(
    records: list[CheckpointRecord], parent_id: str | None
) -> dict[str, JsonValue]:
    parent = next((r for r in reversed(records) if r.id == parent_id), None)
    return dict(parent.values) if parent else {}
