"""What operators and callers do to runs that stand still: reopen, answer, edit, fork.

Each act locks the run's row first, so that two of them, or one and a worker's write,
cannot pass each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models.functions import Now

from stateknot.errors import (
    AlreadyAnsweredError,
    NotFoundError,
)
from stateknot.kernel.cancelling import require_can_cancel
from stateknot.kernel.lifecycle import (
    require_can_reopen,
    require_can_write,
    require_head,
)
from stateknot.kernel.profile import encode
from stateknot.kernel.records import Event
from stateknot.kernel.usage import find_closing, settled
from stateknot.kernel.vocabulary import RunStatus, WaitStatus
from stateknot.models import (
    Checkpoint,
    JournalEvent,
    NodeAttempt,
    Run,
    Thread,
    Wait,
)
from stateknot.models.runs import HOLDING
from stateknot.storage.admitting import insert_fork, superseded
from stateknot.storage.boundary import (
    add_waits,
    checkpoint_row,
    forget_leases,
    load_tip,
    open_timers,
)
from stateknot.storage.cancelling import cancel
from stateknot.storage.journal import append_journal
from stateknot.storage.losses import lose_begun
from stateknot.storage.queueing import begin_next, enqueue
from stateknot.storage.reading import StoreReader
from stateknot.storage.resting import resting_changes
from stateknot.storage.revisions import store_revision
from stateknot.storage.rows import (
    STANDING_WAITS,
    as_uuid,
    attempt_row,
    journal_record,
    run_record,
    wait_record,
)

if TYPE_CHECKING:
    from stateknot.kernel.records import CheckpointRecord, RunRecord, WaitRecord
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import (
        Admission,
        Cancellation,
        ManualWrite,
        Move,
        Reopening,
        ThreadFork,
    )


# Named, since a save of all columns would write back times that the database set, and
# SQLite would sort what it gets back differently.
_ANSWERED = ["status", "answer", "answered_by", "answered_sequence", "answered_at"]
_REOPENED = [
    "status",
    "error",
    "error_code",
    "failed_node",
    "output",
    "ended_at",
    "holder",
    "lease_expires_at",
    "wake_at",
    "woken_at",
    "head_id",
    "lineage",
    "step_limit",
    "lost_claims",
    "next_journal",
    "event_count",
]


_MOVED = ["revision", "head_id", "sequence", "next_journal", "event_count"]


class StoreActs(StoreReader):
    """Acts on the runs of one database alias."""

    def _locked(self, run_id: Any) -> Run:
        run: Run | None = (
            Run.objects.using(self.using)
            .select_for_update(of=("self",))
            .select_related("thread", "revision")
            .filter(id=run_id)
            .first()
        )
        if run is None:
            raise NotFoundError(f"no run {run_id}")
        return run

    def _is_driven(self, run: Run) -> bool:
        """Whether a live lease is on the run, by the database's clock."""
        rows = Run.objects.using(self.using).filter(
            id=run.id, lease_expires_at__gt=Now()
        )
        return rows.exists()

    def reopen(self, reopening: Reopening) -> RunRecord:
        """See the port. Locks: the run's row."""
        run = self._locked(reopening.run_id)
        holding = (
            Run.objects.using(self.using)
            .select_related("thread", "revision")
            .filter(
                thread_id=run.thread_id,
                namespace=run.namespace,
                status__in=HOLDING,
                queued_input=None,
            )
            .first()
        )
        record = run_record(run, run.thread.key, run.revision.digest)
        other = None
        if holding is not None:
            other = run_record(holding, run.thread.key, holding.revision.digest)
        require_can_reopen(record, other, is_driven=self._is_driven(run))
        require_head(record, reopening.expected_head)
        run.status = RunStatus.PENDING.value
        run.error, run.error_code, run.failed_node = None, "", ""
        run.output, run.ended_at, run.holder = None, None, ""
        run.lease_expires_at, run.wake_at, run.woken_at = None, None, None
        run.lost_claims = 0
        forget_leases(run.id, self.using)
        if reopening.fires_timers:
            timers = open_timers(reopening.run_id, self.using)
            timers.update(status=WaitStatus.CLOSED.value)
        if reopening.head_id is not None and reopening.lineage is not None:
            self._leave_branch(run)
            run.head_id = UUID(reopening.head_id)
            run.lineage = reopening.lineage
        run.step_limit = reopening.step_limit or run.step_limit
        events = self._leave_run(run) + reopening.events
        append_journal(run, events, using=self.using, actor=reopening.actor)
        self._save(run, *_REOPENED)
        if not run.namespace:
            Thread.objects.using(self.using).filter(id=run.thread_id).update(
                current_run=run
            )
        self._drop_results(reopening.dropped_attempts)
        add_waits(run, reopening.waits, self.using)
        rows = [
            attempt_row(reopening.run_id, attempt) for attempt in reopening.attempts
        ]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        return run_record(run, run.thread.key, run.revision.digest)

    def _drop_results(self, attempt_ids: tuple[str, ...]) -> None:
        """Mark pending results as used up; a start that nobody ended is lost."""
        rows = NodeAttempt.objects.using(self.using).filter(id__in=attempt_ids)
        lose_begun(rows)
        rows.update(is_folded=True)

    def _leave_run(self, run: Run) -> tuple[Event, ...]:
        """Close what the thread's current run still asks, if that is another one."""
        if run.namespace or run.thread.current_run_id == run.id:
            return ()
        return superseded(run.thread.current_run, self.using)

    def _leave_branch(self, run: Run) -> None:
        """Close what is open on the branch that the run leaves."""
        Wait.objects.using(self.using).filter(
            run_id=run.id, status__in=STANDING_WAITS
        ).update(status=WaitStatus.CLOSED.value)

    def settle(self, run_id: str, usage: dict[str, JsonValue]) -> bool:
        """See the port. Locks: the run's row."""
        run = self._locked(run_id)
        if run.status != RunStatus.CLOSING.value:
            return False
        rows = JournalEvent.objects.using(self.using).filter(run=run)
        newest_first = map(journal_record, rows.order_by("-number").iterator(50))
        error = {**find_closing(newest_first), "usage": usage}
        append_journal(run, [settled(run_id, error)], using=self.using)
        Run.objects.using(self.using).filter(id=run.id).update(
            next_journal=run.next_journal,
            event_count=run.event_count,
            **resting_changes(RunStatus.FAILED, error),
        )
        begin_next(run.thread_id, self.using)
        return True

    def enqueue(self, admission: Admission) -> RunRecord:
        """See the port. Locks: the row of the thread's current run."""
        run = enqueue(admission, self.using)
        return run_record(run, admission.thread_id, admission.digest)

    def cancel(self, cancellation: Cancellation) -> RunRecord:
        """See the port. Locks: the run's row, then its children's."""
        uuid = as_uuid(cancellation.run_id)
        if uuid is None:
            raise NotFoundError(f"no run {cancellation.run_id}")
        run = self._locked(uuid)
        record = run_record(run, run.thread.key, run.revision.digest)
        require_can_cancel(record)
        if record.status.is_terminal:
            return record
        is_driven = self._is_driven(run)
        cancel(run, cancellation, is_driven=is_driven, using=self.using)
        if not is_driven:
            begin_next(run.thread_id, self.using)
        run = self._locked(run.id)
        return run_record(run, run.thread.key, run.revision.digest)

    def answer(self, wait_id: str, value: JsonValue, *, actor: str = "") -> WaitRecord:
        """See the port. Locks: the run's row, then the wait's."""
        uuid = as_uuid(wait_id)
        waits = Wait.objects.using(self.using).select_for_update(of=("self",))
        found = Wait.objects.using(self.using).filter(id=uuid).first() if uuid else None
        if found is None:
            raise NotFoundError(f"no question {wait_id!r}")
        run = self._locked(found.run_id)
        wait = waits.get(id=found.id)
        if wait.status != WaitStatus.OPEN.value:
            who = f" by {wait.answered_by}" if wait.answered_by else ""
            raise AlreadyAnsweredError(
                f"question {wait.question_id or wait_id} is {wait.status}{who}; the "
                "first answer is kept"
            )
        wait.status = WaitStatus.ANSWERED.value
        wait.answer = encode(value)
        wait.answered_by, wait.answered_sequence = actor, run.sequence
        wait.answered_at = Now()
        wait.save(using=self.using, update_fields=_ANSWERED)
        event = Event(kind="wait.answered", node=wait.node_id, data={"wait": wait_id})
        append_journal(run, [event], using=self.using, actor=actor)
        self._save(run, "next_journal", "event_count")
        return wait_record(waits.get(id=found.id), run.thread.key)

    def write(self, change: ManualWrite) -> CheckpointRecord:
        """See the port. Locks: the run's row."""
        run = self._locked(change.run_id)
        record = run_record(run, run.thread.key, run.revision.digest)
        require_can_write(record, is_driven=self._is_driven(run))
        require_head(record, change.expected_head)
        draft = change.checkpoint
        tip = load_tip(run, draft.parent_id, self.using)
        row, _ = checkpoint_row(draft, tip, None)
        row.save(using=self.using, force_insert=True)
        Wait.objects.using(self.using).filter(id__in=change.closed_waits).update(
            status=WaitStatus.CLOSED.value
        )
        self._drop_results(change.dropped_attempts)
        append_journal(
            run,
            change.events,
            using=self.using,
            checkpoint_id=draft.id,
            actor=change.actor,
        )
        run.head_id, run.sequence = UUID(draft.id), draft.sequence
        run.lineage = draft.lineage
        self._save(run, "head_id", "sequence", "lineage", "next_journal", "event_count")
        stored = Checkpoint.objects.using(self.using).get(id=row.id)
        return self.read_row(stored, run.thread.key)

    def move(self, move: Move) -> RunRecord:
        """See the port. Locks: the run's row."""
        run = self._locked(move.run_id)
        record = run_record(run, run.thread.key, run.revision.digest)
        require_can_write(record, is_driven=self._is_driven(run))
        require_head(record, move.expected_head)
        draft = move.checkpoint
        if draft is not None:
            row, _ = checkpoint_row(
                draft, load_tip(run, draft.parent_id, self.using), None
            )
            row.save(using=self.using, force_insert=True)
            run.head_id, run.sequence = row.id, draft.sequence
        append_journal(
            run,
            move.events,
            using=self.using,
            checkpoint_id=draft.id if draft else None,
            actor=move.actor,
        )
        run.revision = store_revision(
            digest=move.digest,
            graph_id=run.graph_id,
            version=move.graph_version,
            definition=move.definition,
            source_map=move.source_map,
            using=self.using,
        )
        self._save(run, *_MOVED)
        return run_record(run, run.thread.key, move.digest)

    def fork(self, fork: ThreadFork) -> RunRecord:
        """See the port."""
        run = insert_fork(fork, self.using)
        add_waits(run, fork.waits, self.using)
        rows = [attempt_row(str(run.id), attempt) for attempt in fork.attempts]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        return run_record(run, fork.admission.thread_id, fork.admission.digest)

    def _save(self, run: Run, *fields: str) -> None:
        run.save(using=self.using, update_fields=fields)
