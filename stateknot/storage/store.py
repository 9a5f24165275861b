"""The Django store: what `DjangoCheckpointer()` gives.

The reading half is in `reading.py`, the boundary commit in `boundary.py`; here stand
claims, admissions and what operators do. Every write locks or conditionally updates the
run's row first, so that two of them cannot pass each other.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models.functions import Coalesce, Now

from stateknot.conf import get_settings
from stateknot.errors import (
    AlreadyAnsweredError,
    LeaseError,
    NotFoundError,
    RunError,
    StaleCheckpointError,
)
from stateknot.kernel.lifecycle import require_can_reopen, require_can_write
from stateknot.kernel.profile import encode
from stateknot.kernel.records import Event, Fence
from stateknot.kernel.vocabulary import RunStatus, WaitStatus
from stateknot.models import Checkpoint, NodeAttempt, Run, Wait
from stateknot.storage.admitting import insert_fork, insert_run
from stateknot.storage.boundary import (
    TipCache,
    add_waits,
    checkpoint_row,
    commit_boundary,
    load_tip,
    open_timers,
    resting_changes,
)
from stateknot.storage.journal import append_journal
from stateknot.storage.reading import StoreReader
from stateknot.storage.rows import (
    STANDING_WAITS,
    as_uuid,
    attempt_row,
    run_record,
    wait_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stateknot.kernel.records import (
        Admission,
        AttemptRecord,
        Boundary,
        CheckpointRecord,
        Deferral,
        ManualWrite,
        Reopening,
        RunRecord,
        ThreadFork,
        WaitRecord,
    )
    from stateknot.kernel.vocabulary import JsonValue


class DjangoCheckpointer(StoreReader):
    """Keeps threads in the database `using` (default: the engine's setting)."""

    def __init__(self, using: str | None = None) -> None:
        self._using = using
        self._tips = TipCache()

    @property
    def using(self) -> str:  # type: ignore[override]
        """The database alias."""
        return self._using or get_settings().database

    @property
    def heartbeat_seconds(self) -> float:
        """See the port."""
        return get_settings().heartbeat_seconds

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """See the port."""
        with transaction.atomic(using=self.using):
            yield

    def check_placement(self) -> None:
        """Refuse to drive inside a transaction, a test case's excepted.

        A handler's work and every boundary would hang on the caller's commit.
        """
        connection = connections[self.using]
        blocks = connection.atomic_blocks
        if blocks and not all(block._from_testcase for block in blocks):
            raise RunError(
                "a graph cannot run inside a transaction: its boundaries would vanish "
                "with it. Run it after the atomic block, or use services.start_run, "
                "which takes part in the transaction and runs on a worker"
            )

    def now(self) -> datetime:
        """See the port: the database's clock."""
        with connections[self.using].cursor() as cursor:
            is_postgres = connections[self.using].vendor == "postgresql"
            cursor.execute(
                "SELECT clock_timestamp()"
                if is_postgres
                else "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"
            )
            (value,) = cursor.fetchone()
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        return datetime.fromisoformat(value).replace(tzinfo=UTC)

    def thread_finished(self) -> None:
        """See the port: close the connections of this thread."""
        connections.close_all()

    def admit(self, admission: Admission, holder: str | None = None) -> RunRecord:
        """See the port."""
        run, digest = insert_run(admission, self.using)
        if holder is not None:
            self._take(run, holder)
        return run_record(run, admission.thread_id, digest)

    def claim(self, run_id: str, holder: str) -> Fence | None:
        """See the port. Locks: the run's row."""
        uuid = as_uuid(run_id)
        runs = Run.objects.using(self.using).runnable().select_for_update()
        run = runs.filter(id=uuid).first() if uuid else None
        if run is None:
            return None
        if run.holder:
            event = Event(
                kind="lease.expired", data={"holder": run.holder, "epoch": run.epoch}
            )
            append_journal(run, [event], using=self.using)
            self._save(run, "next_journal", "event_count")
        self._take(run, holder)
        return Fence(run_id=run_id, epoch=run.epoch, holder=holder)

    def _take(self, run: Run, holder: str) -> None:
        lease = timedelta(seconds=get_settings().lease_seconds)
        run.status = RunStatus.RUNNING.value
        run.epoch += 1
        run.holder = holder
        Run.objects.using(self.using).filter(id=run.id).update(
            status=run.status,
            epoch=run.epoch,
            holder=holder,
            lease_expires_at=Now() + lease,
            started_at=Coalesce("started_at", Now()),
            wake_at=None,
        )

    def renew(self, fence: Fence) -> None:
        """See the port."""
        lease = timedelta(seconds=get_settings().lease_seconds)
        self._update_held(fence, lease_expires_at=Now() + lease)

    def _update_held(self, fence: Fence, **changes: Any) -> None:
        held = Run.objects.using(self.using).filter(
            id=fence.run_id, epoch=fence.epoch, holder=fence.holder
        )
        if not held.update(**changes):
            raise LeaseError(fence.run_id, fence.epoch)

    def _held(self, fence: Fence) -> Run:
        run: Run | None = (
            Run.objects.using(self.using)
            .select_for_update()
            .filter(id=fence.run_id, epoch=fence.epoch, holder=fence.holder)
            .first()
        )
        if run is None:
            raise LeaseError(fence.run_id, fence.epoch)
        return run

    def release(self, fence: Fence) -> bool:
        """See the port."""
        run = self._held(fence)
        wants_more = run.status in (RunStatus.PENDING.value, RunStatus.RUNNING.value)
        run.holder, run.lease_expires_at = "", None
        if wants_more:
            run.status = RunStatus.PENDING.value
        self._save(run, "holder", "lease_expires_at", "status")
        return wants_more

    def commit(self, fence: Fence, boundary: Boundary) -> None:
        """See the port."""
        commit_boundary(fence, boundary, tips=self._tips, using=self.using)

    def record_attempts(
        self, fence: Fence, attempts: Sequence[AttemptRecord], events: Sequence[Event]
    ) -> None:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        rows = [attempt_row(fence.run_id, attempt) for attempt in attempts]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        append_journal(run, events, using=self.using)
        self._save(run, "next_journal", "event_count")

    def defer(self, fence: Fence, deferral: Deferral) -> None:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        rows = [attempt_row(fence.run_id, attempt) for attempt in deferral.attempts]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        add_waits(run, deferral.waits, self.using)
        append_journal(run, deferral.events, using=self.using)
        changes = resting_changes(RunStatus.WAITING, None)
        delay = timedelta(seconds=deferral.delay_seconds)
        self._update_held(
            fence,
            **changes
            | {
                "wake_at": Now() + delay,
                "active_seconds": run.active_seconds + deferral.active_seconds,
                "next_journal": run.next_journal,
                "event_count": run.event_count,
            },
        )

    def finish(
        self,
        fence: Fence,
        status: RunStatus,
        *,
        error: dict[str, JsonValue] | None,
        events: Sequence[Event],
    ) -> None:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        append_journal(run, events, using=self.using)
        self._update_held(
            fence,
            next_journal=run.next_journal,
            event_count=run.event_count,
            **resting_changes(status, error),
        )

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
                status__in=[str(s) for s in RunStatus if s.is_holding],
            )
            .first()
        )
        record = run_record(run, run.thread.key, run.revision.digest)
        other = holding and run_record(holding, run.thread.key, holding.revision.digest)
        require_can_reopen(record, other, is_driven=self._is_driven(run))
        run.status = RunStatus.PENDING.value
        run.error, run.error_code, run.failed_node, run.ended_at = None, "", "", None
        run.holder, run.lease_expires_at, run.wake_at, run.woken_at = (
            "",
            None,
            None,
            None,
        )
        if reopening.fires_timers:
            timers = open_timers(reopening.run_id, self.using)
            timers.update(status=WaitStatus.CLOSED.value)
        if reopening.head_id is not None and reopening.lineage is not None:
            self._leave_branch(run)
            run.head_id = UUID(reopening.head_id)
            run.lineage = reopening.lineage
        run.step_limit = reopening.step_limit or run.step_limit
        append_journal(run, reopening.events, using=self.using, actor=reopening.actor)
        run.save(using=self.using)
        run.thread.current_run = run
        run.thread.save(using=self.using, update_fields=["current_run"])
        add_waits(run, reopening.waits, self.using)
        rows = [
            attempt_row(reopening.run_id, attempt) for attempt in reopening.attempts
        ]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        return run_record(run, run.thread.key, run.revision.digest)

    def _leave_branch(self, run: Run) -> None:
        """Close what is open on the branch that the run leaves."""
        Wait.objects.using(self.using).filter(
            run_id=run.id, status__in=STANDING_WAITS
        ).update(status=WaitStatus.CLOSED.value)

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
                f"question {wait.question_id or wait_id} is {wait.status}{who}; the first "
                "answer is kept"
            )
        wait.status = WaitStatus.ANSWERED.value
        wait.answer = encode(value)
        wait.answered_by, wait.answered_sequence = actor, run.sequence
        wait.answered_at = Now()
        wait.save(using=self.using)
        event = Event(kind="wait.answered", node=wait.node_id, data={"wait": wait_id})
        append_journal(run, [event], using=self.using, actor=actor)
        self._save(run, "next_journal", "event_count")
        return wait_record(waits.get(id=found.id), run.thread.key)

    def write(self, change: ManualWrite) -> CheckpointRecord:
        """See the port. Locks: the run's row."""
        run = self._locked(change.run_id)
        record = run_record(run, run.thread.key, run.revision.digest)
        require_can_write(record, is_driven=self._is_driven(run))
        if str(run.head_id) != change.expected_head:
            raise StaleCheckpointError(
                thread_id=run.thread.key,
                expected=change.expected_head,
                found=str(run.head_id),
            )
        draft = change.checkpoint
        tip = load_tip(run, draft.parent_id, self.using)
        row, _ = checkpoint_row(draft, tip, None)
        row.save(using=self.using, force_insert=True)
        Wait.objects.using(self.using).filter(id__in=change.closed_waits).update(
            status=WaitStatus.CLOSED.value
        )
        NodeAttempt.objects.using(self.using).filter(
            id__in=change.dropped_attempts
        ).update(is_folded=True)
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

    def fork(self, fork: ThreadFork) -> RunRecord:
        """See the port."""
        run, digest = insert_fork(fork, self.using)
        add_waits(run, fork.waits, self.using)
        rows = [attempt_row(str(run.id), attempt) for attempt in fork.attempts]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        return run_record(run, fork.admission.thread_id, digest)

    def _save(self, run: Run, *fields: str) -> None:
        run.save(using=self.using, update_fields=fields)
