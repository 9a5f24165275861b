"""What the memory store keeps of a run.

The class changes under the store's lock only; the records it hands out are frozen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from stateknot.kernel.once import lost_if_begun
from stateknot.kernel.records import (
    Event,
    Fence,
    JournalRecord,
    RunRecord,
)
from stateknot.kernel.vocabulary import (
    AttemptStatus,
    RunStatus,
)
from stateknot.kernel.writes import CheckpointDraft

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from stateknot.kernel.memory_threads import MemoryThread
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
        events = admission.events + superseded(thread, admission.namespace)
        draft = thread.input_draft(admission)
        thread.append(admission.run_id, draft, at)
        record = _new_record(thread.id, admission, draft, at)
        run = cls(record=record, undo=thread.undo)
        run.note(events, at, draft.id, admission.actor)
        return run

    @classmethod
    def queued(cls, thread: MemoryThread, admission: Admission, at: datetime) -> Self:
        """A run whose input record is written once its thread is free."""
        record = _new_record(thread.id, admission, thread.input_draft(admission), at)
        queued = replace(record, is_queued=True)
        return cls(record=queued, undo=thread.undo)

    def begin(
        self, thread: MemoryThread, admission: Admission, at: datetime
    ) -> CheckpointDraft:
        """Write the input record of a queued run, behind what its thread has now."""
        draft = thread.input_draft(admission)
        thread.append(self.record.id, draft, at)
        self.move_head(draft)
        self.change(is_queued=False)
        return draft

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
        if self.record.is_to_be_cancelled or self.record.is_queued:
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
