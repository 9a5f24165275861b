"""The store that keeps everything in this process: for tests and throw-away runs.

It offers the same port as the Django store and passes the same contract suite. State is
shared between records field by field, so a record costs what its superstep changed. The
clock comes in from outside. `memory_rows.py` holds what it keeps per thread.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from stateknot.errors import (
    AlreadyAnsweredError,
    LeaseError,
    NotFoundError,
    ThreadBusyError,
)
from stateknot.kernel.cancelling import as_cancelled, require_can_cancel
from stateknot.kernel.lifecycle import (
    require_can_reopen,
    require_can_write,
    require_head,
    require_key,
    require_same_graph,
)
from stateknot.kernel.memory_cancelling import MemoryCanceller
from stateknot.kernel.memory_rows import MemoryRun, superseded
from stateknot.kernel.memory_threads import MemoryThread
from stateknot.kernel.records import NO_LIMIT, Fence, RunRecord, WaitRecord
from stateknot.kernel.undo import Undo
from stateknot.kernel.usage import find_closing, settled
from stateknot.kernel.vocabulary import RunStatus, WaitStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        Event,
        Recorded,
        Slots,
    )
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import (
        Admission,
        Boundary,
        Cancellation,
        Deferral,
        ManualWrite,
        Move,
        Reopening,
        ThreadFork,
    )


class MemoryStore(MemoryCanceller):
    """Keeps records in dictionaries under one lock. `now` gives aware UTC datetimes."""

    heartbeat_seconds = None

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self._lock = threading.RLock()
        self._undo = Undo()

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Hold the lock; what was written is undone when the block raises."""
        with self._lock, self._undo.block():
            yield

    def check_placement(self) -> None:
        """A memory store may be used anywhere."""

    def thread_finished(self) -> None:
        """Nothing is held per thread."""

    def admit(self, admission: Admission, holder: str | None = None) -> RunRecord:
        """See the port."""
        thread = self._free_thread(admission)
        run = MemoryRun.admitted(thread, admission, self.now())
        if holder is not None:
            run.take(holder, self.now())
        thread.enter(run)
        self._undo.put(self._runs, run.record.id, run)
        return run.record

    def enqueue(self, admission: Admission) -> RunRecord:
        """See the port."""
        thread = self._thread(admission)
        if thread.holding_run(()) is None and not self._is_awaited(thread):
            return self.admit(admission)
        record = self._queue(thread, admission)
        self._begin_next(thread)
        return record

    def claim(
        self,
        run_id: str,
        holder: str,
        *,
        supersede: bool = False,
        slots: Slots = NO_LIMIT,
    ) -> Fence | None:
        """See the port."""
        run = self._runs.get(run_id)
        if run is None or not run.is_due(self.now()):
            return None
        if run.holder is not None and not supersede:
            return None
        if not self._has_slot(run.record, slots):
            return None
        return run.take(holder, self.now())

    def _has_slot(self, wanted: RunRecord, slots: Slots) -> bool:
        """Whether one more run may be driven."""
        driven = [
            run.record.graph_id
            for run in self._runs.values()
            if run.holder is not None
            and run.record.parent_run_id is None
            and run.record.id != wanted.id
        ]
        of_graph = driven.count(wanted.graph_id)
        return (slots.of_graph is None or of_graph < slots.of_graph) and (
            slots.in_all is None or len(driven) < slots.in_all
        )

    def renew(self, fence: Fence) -> bool:
        """See the port."""
        with self._lock:
            return self._held(fence).record.is_to_be_cancelled

    def release(self, fence: Fence) -> bool:
        """See the port."""
        run = self._held(fence)
        if self._ended_cancelled(run, ()):
            return False
        run.hold(None)
        wants_more = run.record.status in (RunStatus.PENDING, RunStatus.RUNNING)
        if wants_more:
            run.change(status=RunStatus.PENDING)
        return wants_more

    def commit(self, fence: Fence, boundary: Boundary) -> bool:
        """See the port."""
        with self.atomic():
            run = self._held(fence)
            is_cancelled = run.record.is_to_be_cancelled
            if is_cancelled:
                boundary = as_cancelled(boundary)
            thread = self._threads[run.record.thread_id]
            thread.append(run.record.id, boundary.checkpoint, self.now())
            run.record_attempts(boundary.attempts)
            run.fold_attempts(boundary.folded_attempts, self.now())
            thread.add_waits(run.record, boundary.waits, self.now())
            thread.set_waits(boundary.delivered_waits, WaitStatus.DELIVERED)
            thread.set_waits(boundary.closed_waits, WaitStatus.CLOSED)
            events = boundary.events
            if boundary.status is RunStatus.CANCELLED:
                events = (*events, self._close_family(run))
            run.note(events, self.now(), boundary.checkpoint.id)
            run.advance(boundary, self.now(), thread.last_timer(run.record))
            self._begin_next(thread)
        return is_cancelled

    def record_attempts(
        self, fence: Fence, attempts: Sequence[AttemptRecord], events: Sequence[Event]
    ) -> None:
        """See the port."""
        run = self._held(fence)
        run.record_attempts(attempts)
        run.note(tuple(events), self.now())

    @contextmanager
    def beside(self) -> Iterator[Callable[[], None]]:
        """A transaction of the project's database, where there is one.

        Gives what undoes it. A process without a database has nothing to undo.
        """
        yield lambda: None

    def record_with(self, fence: Fence, work: Callable[[], Recorded | None]) -> None:
        """See the port. Nobody else writes while `work` runs, as on SQLite."""
        with self.atomic(), self.beside() as undo:
            recorded = work()
            if recorded is None:
                undo()
                return
            self.record_attempts(fence, recorded.attempts, recorded.events)

    def defer(self, fence: Fence, deferral: Deferral) -> bool:
        """See the port."""
        run = self._held(fence)
        thread = self._threads[run.record.thread_id]
        run.record_attempts(deferral.attempts)
        if self._ended_cancelled(run, deferral.events):
            return True
        thread.add_waits(run.record, deferral.waits, self.now())
        run.note(deferral.events, self.now())
        run.defer(deferral, self.now())
        return False

    def settle(self, run_id: str, usage: dict[str, JsonValue]) -> bool:
        """See the port."""
        run = self._runs[run_id]
        if run.record.status is not RunStatus.CLOSING:
            return False
        error = {**find_closing(reversed(run.journal)), "usage": usage}
        run.note((settled(run_id, error),), self.now())
        run.end(RunStatus.FAILED, error, self.now())
        self._begin_next(self._threads[run.record.thread_id])
        return True

    def finish(
        self,
        fence: Fence,
        status: RunStatus,
        *,
        error: dict[str, JsonValue] | None,
        events: Sequence[Event],
    ) -> bool:
        """See the port."""
        run = self._held(fence)
        if self._ended_cancelled(run, events):
            return True
        run.note(tuple(events), self.now())
        run.end(status, error, self.now())
        self._begin_next(self._threads[run.record.thread_id])
        return False

    def cancel(self, cancellation: Cancellation) -> RunRecord:
        """See the port."""
        run = self._runs.get(cancellation.run_id)
        if run is None:
            raise NotFoundError(f"no run {cancellation.run_id}")
        require_can_cancel(run.record)
        if not run.record.status.is_terminal:
            with self.atomic():
                self._cancel(run, cancellation.reason, cancellation.actor)
        return run.record

    def reopen(self, reopening: Reopening) -> RunRecord:
        """See the port."""
        run = self._runs[reopening.run_id]
        thread = self._threads[run.record.thread_id]
        newest = thread.holding_run(run.record.namespace)
        require_can_reopen(run.record, newest, is_driven=run.holder is not None)
        require_head(run.record, reopening.expected_head)
        if reopening.fires_timers:
            timers = thread.open_timers(run.record)
            thread.set_waits([wait.id for wait in timers], WaitStatus.CLOSED)
        if reopening.head_id is not None:
            thread.close_waits_of(run.record)
        thread.add_waits(run.record, reopening.waits, self.now())
        run.fold_attempts(reopening.dropped_attempts, self.now())
        run.record_attempts(reopening.attempts)
        if thread.current.get(run.record.namespace) is not run:
            left = superseded(thread, run.record.namespace)
            reopening = replace(reopening, events=left + reopening.events)
        run.reopen(reopening, self.now())
        thread.enter(run)
        return run.record

    def answer(self, wait_id: str, value: JsonValue, *, actor: str = "") -> WaitRecord:
        """See the port."""
        wait = self.find_wait(wait_id)
        if wait is None:
            raise NotFoundError(f"no question {wait_id!r}")
        if wait.status != WaitStatus.OPEN:
            raise AlreadyAnsweredError(
                f"question {wait_id} is {wait.status}; the first answer is kept"
            )
        run = self._runs[wait.run_id]
        answered = replace(
            wait,
            status=WaitStatus.ANSWERED,
            answer=value,
            answered_by=actor,
            answered_sequence=run.record.sequence,
        )
        self._threads[wait.thread_id].keep_wait(answered)
        run.note_answer(answered, actor, self.now())
        return answered

    def write(self, change: ManualWrite) -> CheckpointRecord:
        """See the port."""
        run = self._runs[change.run_id]
        require_can_write(run.record, is_driven=run.holder is not None)
        require_head(run.record, change.expected_head)
        thread = self._threads[run.record.thread_id]
        record = thread.append(None, change.checkpoint, self.now())
        thread.set_waits(change.closed_waits, WaitStatus.CLOSED)
        run.fold_attempts(change.dropped_attempts, self.now())
        run.note(change.events, self.now(), record.id, change.actor)
        run.move_head(change.checkpoint)
        return record

    def move(self, move: Move) -> RunRecord:
        """See the port."""
        run = self._runs[move.run_id]
        require_can_write(run.record, is_driven=run.holder is not None)
        require_head(run.record, move.expected_head)
        run.change(digest=move.digest)
        checkpoint_id = None
        if move.checkpoint is not None:
            thread = self._threads[run.record.thread_id]
            checkpoint_id = thread.append(None, move.checkpoint, self.now()).id
            run.move_head(move.checkpoint)
        run.note(move.events, self.now(), checkpoint_id, move.actor)
        return run.record

    def fork(self, fork: ThreadFork) -> RunRecord:
        """See the port."""
        thread = self._free_thread(fork.admission)
        run = MemoryRun.forked(thread, fork, self.now())
        thread.enter(run)
        self._undo.put(self._runs, run.record.id, run)
        thread.add_waits(run.record, fork.waits, self.now())
        run.record_attempts(fork.attempts)
        return run.record

    def _free_thread(self, admission: Admission) -> MemoryThread:
        """The thread of an admission, made if new. Raises if it may not begin there."""
        thread = self._thread(admission)
        busy = thread.holding_run(admission.namespace)
        if busy is not None:
            raise ThreadBusyError(
                thread_id=thread.id, run_id=busy.id, status=busy.status
            )
        return thread

    def _thread(self, admission: Admission) -> MemoryThread:
        key, graph_id = admission.thread_id, admission.graph_id
        require_key(key, "thread id")
        if key not in self._threads:
            new = MemoryThread(id=key, graph_id=graph_id, undo=self._undo)
            self._undo.put(self._threads, key, new)
        thread = self._threads[key]
        if not admission.namespace:
            require_same_graph(key, thread.graph_id, graph_id)
        return thread

    def _held(self, fence: Fence) -> MemoryRun:
        run = self._runs[fence.run_id]
        if run.holder != fence.holder or run.record.epoch != fence.epoch:
            raise LeaseError(fence.run_id, fence.epoch)
        return run
