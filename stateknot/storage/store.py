"""The Django store: what `DjangoCheckpointer()` gives.

Here stand leases and what a driver writes; reading is in `reading.py`, what operators
do in `acts.py`, the boundary commit in `boundary.py`. Every write locks or
conditionally updates the run's row first, so that two of them cannot pass each other.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, connections
from django.db.models.functions import Coalesce, Now

from stateknot.conf import get_settings
from stateknot.errors import (
    LeaseError,
    RunError,
)
from stateknot.kernel.records import NO_LIMIT, Fence
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import NodeAttempt, Run
from stateknot.storage.acts import StoreActs
from stateknot.storage.admitting import insert_run
from stateknot.storage.boundary import (
    TipCache,
    add_waits,
    commit_boundary,
    forget_leases,
)
from stateknot.storage.cancelling import end_cancelled
from stateknot.storage.holding import bound_lock, engine_transaction, held_run
from stateknot.storage.journal import append_journal
from stateknot.storage.losses import close_attempt, note_loss
from stateknot.storage.queueing import begin_next
from stateknot.storage.resting import resting_changes
from stateknot.storage.rows import (
    as_uuid,
    attempt_row,
    run_record,
)
from stateknot.storage.slots import has_slot
from stateknot.storage.spreading import renew_activation, require_activation
from stateknot.storage.together import node_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stateknot.kernel.records import (
        AttemptRecord,
        Event,
        Recorded,
        RunRecord,
        Slots,
    )
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import Admission, Boundary, Deferral
    from stateknot.models.querysets import RunQuerySet


class DjangoCheckpointer(StoreActs):
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
        with engine_transaction(self.using):
            yield

    def check_placement(self) -> None:
        """Refuse to drive inside a transaction, a test case's excepted.

        A handler's work and every boundary would hang on the caller's commit.
        """
        connection = connections[self.using]
        blocks = connection.atomic_blocks
        if blocks and not all(
            getattr(block, "_from_testcase", False) for block in blocks
        ):
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
        run, tip = insert_run(admission, self.using)
        if holder is not None:
            self._take(run, holder)
            self._tips.keep(admission.run_id, tip)
        return run_record(run, admission.thread_id, admission.digest)

    def claim(
        self,
        run_id: str,
        holder: str,
        *,
        supersede: bool = False,
        slots: Slots = NO_LIMIT,
    ) -> Fence | None:
        """See the port. Locks: the run's row, then the counts of `slots`."""
        uuid = as_uuid(run_id)
        rows = Run.objects.using(self.using)
        due = rows.due() if supersede else rows.runnable()
        runs = due.select_for_update()
        run = runs.filter(id=uuid).first() if uuid else None
        if run is None:
            return None
        if not has_slot(run, slots, self.using):
            return None
        # A parent may also take a child from a live holder: nothing is lost then.
        is_lost = bool(run.holder) and not (supersede and self._is_driven(run))
        if is_lost and note_loss(run, self.using):
            begin_next(run.thread_id, self.using)
            return None
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

    def renew(self, fence: Fence) -> bool:
        """See the port. The update itself tells whether somebody asked to cancel."""
        lease = timedelta(seconds=get_settings().lease_seconds)
        if fence.activation is not None:
            return renew_activation(fence, fence.activation, lease, self.using)
        bound_lock(self.using)
        held = self._rows_of(fence)
        going = held.filter(cancel_requested_at=None)
        if going.update(lease_expires_at=Now() + lease):
            return False
        if held.exists():
            return True
        raise LeaseError(fence.run_id, fence.epoch)

    def _update_held(self, fence: Fence, **changes: Any) -> None:
        if not self._rows_of(fence).update(**changes):
            raise LeaseError(fence.run_id, fence.epoch)

    def _rows_of(self, fence: Fence) -> RunQuerySet:
        return Run.objects.using(self.using).filter(
            id=fence.run_id, epoch=fence.epoch, holder=fence.holder
        )

    def _held(self, fence: Fence) -> Run:
        run = held_run(fence, self.using)
        if fence.activation is not None:
            require_activation(fence, fence.activation, self.using)
        return run

    def release(self, fence: Fence) -> bool:
        """See the port."""
        run = self._held(fence)
        if self._ended_cancelled(run, ()):
            return False
        wants_more = run.status in (RunStatus.PENDING.value, RunStatus.RUNNING.value)
        run.holder, run.lease_expires_at, run.lost_claims = "", None, 0
        if wants_more:
            run.status = RunStatus.PENDING.value
        self._save(run, "holder", "lease_expires_at", "status", "lost_claims")
        return wants_more

    def _ended_cancelled(self, run: Run, events: Sequence[Event]) -> bool:
        """End a run that somebody asked to cancel; False, and nothing, for another."""
        if run.cancel_requested_at is None:
            return False
        end_cancelled(run, events, self.using)
        begin_next(run.thread_id, self.using)
        return True

    def commit(self, fence: Fence, boundary: Boundary) -> bool:
        """See the port."""
        return commit_boundary(
            fence, boundary, tips=self._tips, using=self.using, freed=begin_next
        )

    def record_attempts(
        self, fence: Fence, attempts: Sequence[AttemptRecord], events: Sequence[Event]
    ) -> None:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        rows = [attempt_row(fence.run_id, a) for a in attempts if not a.closes]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        for attempt in attempts:
            if attempt.closes:
                close_attempt(attempt, self.using)
        append_journal(run, events, using=self.using)
        self._save(run, "next_journal", "event_count")

    def record_with(self, fence: Fence, work: Callable[[], Recorded | None]) -> None:
        """See the port. Locks: the run's row, once `work` is done."""
        with node_transaction(self.using) as undo:
            recorded = work()
            if recorded is None:
                undo()
                return
            try:
                self.record_attempts(fence, recorded.attempts, recorded.events)
            except DatabaseError as error:
                error.add_note(
                    "a transactional handler that catches a database error must do so "
                    "around a transaction.atomic() block of its own"
                )
                raise

    def defer(self, fence: Fence, deferral: Deferral) -> bool:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        rows = [attempt_row(fence.run_id, attempt) for attempt in deferral.attempts]
        NodeAttempt.objects.using(self.using).bulk_create(rows)
        if self._ended_cancelled(run, deferral.events):
            return True
        add_waits(run, deferral.waits, self.using)
        forget_leases(run.id, self.using)
        append_journal(run, deferral.events, using=self.using)
        changes = resting_changes(RunStatus.WAITING, None)
        delay = timedelta(seconds=deferral.delay_seconds)
        self._update_held(
            fence,
            **changes
            | {
                "wake_at": Now() + delay,
                "lost_claims": 0,
                "active_seconds": run.active_seconds + deferral.active_seconds,
                "next_journal": run.next_journal,
                "event_count": run.event_count,
            },
        )
        return False

    def finish(
        self,
        fence: Fence,
        status: RunStatus,
        *,
        error: dict[str, JsonValue] | None,
        events: Sequence[Event],
    ) -> bool:
        """See the port. Locks: the run's row."""
        run = self._held(fence)
        if self._ended_cancelled(run, events):
            return True
        append_journal(run, events, using=self.using)
        self._update_held(
            fence,
            next_journal=run.next_journal,
            event_count=run.event_count,
            **resting_changes(status, error),
        )
        if status.is_terminal:
            begin_next(run.thread_id, self.using)
        return False
