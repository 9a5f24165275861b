"""When boundaries are written: `sync`, `async` or `exit`.

A `Committer` takes the boundaries of one drive in order. What it guarantees in every
mode: boundaries are stored in order, nothing is stored behind a write that failed, and
the boundary at which a run rests is stored before its caller hears of it.

Note [Nothing behind a failed write]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
In `async` mode one thread writes from a queue. After its first failure it drops
whatever comes later, and the failure is raised at the next boundary or when the drive
rests: a record is never stored whose parent was not.

Note [One place for many]
~~~~~~~~~~~~~~~~~~~~~~~~~
In `exit` mode many boundaries become one record, at the sequence of the first. The
drive counts on, so what belongs to a later one (attempts, questions, and the records
behind a boundary that had to be written early) is moved down by the number of
boundaries that were swallowed so far. Otherwise a fork would not find the
questions of the record, and a retry would count attempts that are not its own.
"""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from stateknot.errors import LeaseError, StoreLostError
from stateknot.kernel.records import AttemptRecord, Recorded, WaitRecord
from stateknot.kernel.retry import is_retryable
from stateknot.kernel.vocabulary import DurabilityMode, RunStatus
from stateknot.runtime.telling import SAVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stateknot.kernel.records import Event, Fence
    from stateknot.kernel.store import Store
    from stateknot.kernel.writes import Boundary, Deferral
    from stateknot.runtime.events import EventLog
    from stateknot.runtime.stopping import Stop

Placed = TypeVar("Placed", AttemptRecord, WaitRecord)


class Committer:
    """Writes each boundary before the run goes on (`sync`)."""

    def __init__(self, store: Store, fence: Fence, log: EventLog, stop: Stop) -> None:
        self.store, self.fence, self.log, self.stop = store, fence, log, stop

    def commit(self, boundary: Boundary) -> None:
        """Take a boundary; raises what the store raised."""
        self._write(boundary)

    def record(self, attempts: Sequence[AttemptRecord]) -> None:
        """Store attempts that ended between boundaries, with what was told so far."""
        self.drain()
        placed = self._placed(attempts)
        with self.store.atomic():
            self.store.record_attempts(self.fence, placed, self.log.take())

    def record_now(self, attempts: Sequence[AttemptRecord]) -> None:
        """Store attempts, and whatever was taken before them, in every mode."""
        self.drain()
        with self._losing():
            self.record(attempts)

    def record_with(self, work: Callable[[], Sequence[AttemptRecord] | None]) -> None:
        """Store the attempts that `work` gives in the transaction that it runs in.

        What was taken before is stored first: the transaction is not held while a
        writer waits for it. See `Store.record_with` for None. Raises StoreLostError
        where it is not known what was stored; what `work` raises is raised as it is.
        """
        self.drain()
        taken: list[Event] = []
        raised: list[Exception] = []

        def recorded() -> Recorded | None:
            try:
                attempts = work()
            except Exception as error:
                raised.append(error)
                raise
            if attempts is None:
                return None
            taken.extend(self.log.take())
            return Recorded(attempts=self._placed(attempts), events=tuple(taken))

        try:
            with self._losing(raised):
                self.store.record_with(self.fence, recorded)
        except Exception:
            self.log.put_back(taken)
            raise

    @contextmanager
    def _losing(self, known: Sequence[Exception] = ()) -> Iterator[None]:
        """Tell a store that was lost from a failure of the node, but for `known`.

        Taken for the node's own, it would end a run whose result may well be stored.
        """
        try:
            yield
        except LeaseError:
            raise
        except Exception as error:
            if error in known or not is_retryable(error):
                raise
            lost = StoreLostError(self.fence.run_id, self.fence.epoch, str(error))
            raise lost from error

    def _placed(self, records: Sequence[Placed]) -> tuple[Placed, ...]:
        """The records at the sequence that they have in the store."""
        return tuple(records)

    def drain(self) -> None:
        """Wait until everything taken is stored; raises the first failure."""

    def finish(self, status: RunStatus, error: dict[str, Any] | None) -> None:
        """End the run without a checkpoint."""
        self.drain()
        with self.store.atomic():
            is_cancelled = self.store.finish(
                self.fence, status, error=error, events=self.log.take()
            )
        self.stop.note(is_cancelled)

    def defer(self, deferral: Deferral) -> None:
        """Put the head's superstep off."""
        self.drain()
        with self.store.atomic():
            is_cancelled = self.store.defer(self.fence, deferral)
        self.stop.note(is_cancelled)

    def close(self) -> None:
        """Free what the committer holds; never raises."""

    def _write(self, boundary: Boundary) -> None:
        """Store a boundary; only then is it told live that it is saved."""
        self.stop.note(self.store.commit(self.fence, boundary))
        for event in boundary.events:
            if event.kind == SAVED:
                self.log.pass_on(event, live_only=True)


class ExitCommitter(Committer):
    """Writes only the boundary at which the run rests, with all changes (`exit`).

    See Note [One place for many].
    """

    def __init__(self, store: Store, fence: Fence, log: EventLog, stop: Stop) -> None:
        super().__init__(store, fence, log, stop)
        self._held: Boundary | None = None
        self._behind: list[AttemptRecord] = []
        self._swallowed = 0
        self._lock = threading.RLock()

    def commit(self, boundary: Boundary) -> None:
        """See the base."""
        behind, self._behind = tuple(self._behind), []
        later = replace(boundary, attempts=(*behind, *boundary.attempts))
        if self._held is None:
            self._held = _at_first(later, self._swallowed)
        else:
            self._swallowed += 1
            self._held = _merged(self._held, later, self._swallowed)
        if boundary.status is not RunStatus.RUNNING:
            self.drain()

    def record(self, attempts: Sequence[AttemptRecord]) -> None:
        """Hold attempts back too, behind a boundary that is not written yet."""
        with self._lock:
            if self._held is None:
                super().record(attempts)
            else:
                self._behind.extend(attempts)

    def drain(self) -> None:
        """See the base. Whoever comes second finds it written."""
        with self._lock:
            held, self._held = self._held, None
            behind, self._behind = self._behind, []
            if held is not None:
                self._write(held)
            if behind:
                super().record(behind)

    def defer(self, deferral: Deferral) -> None:
        """See the base."""
        moved = replace(
            deferral,
            attempts=self._placed(deferral.attempts),
            waits=self._placed(deferral.waits),
        )
        super().defer(moved)

    def _placed(self, records: Sequence[Placed]) -> tuple[Placed, ...]:
        """See the base."""
        return _moved(records, self._swallowed)


def _at_first(boundary: Boundary, swallowed: int) -> Boundary:
    """A boundary at its place in the store, behind others that became one."""
    if not swallowed:
        return boundary
    draft = boundary.checkpoint
    return replace(
        boundary,
        checkpoint=replace(draft, sequence=draft.sequence - swallowed),
        attempts=_moved(boundary.attempts, swallowed),
        waits=_moved(boundary.waits, swallowed),
    )


def _merged(held: Boundary, later: Boundary, swallowed: int) -> Boundary:
    """Two boundaries as one record, at the place of the first."""
    first, last = held.checkpoint, later.checkpoint
    draft = replace(
        last,
        sequence=first.sequence,
        parent_id=first.parent_id,
        delta=first.delta.then(last.delta),
        completed=(*first.completed, *last.completed),
        metadata=_merged_metadata(first.metadata, last.metadata),
    )
    told = tuple(event for event in held.events if event.kind != SAVED)
    return replace(
        later,
        checkpoint=draft,
        active_seconds=held.active_seconds + later.active_seconds,
        attempts=(*held.attempts, *_moved(later.attempts, swallowed)),
        folded_attempts=(*held.folded_attempts, *later.folded_attempts),
        waits=(*held.waits, *_moved(later.waits, swallowed)),
        closed_waits=(*held.closed_waits, *later.closed_waits),
        delivered_waits=(*held.delivered_waits, *later.delivered_waits),
        events=(*told, *later.events),
        ends_spread=held.ends_spread or later.ends_spread,
    )


def _moved(records: Sequence[Placed], swallowed: int) -> tuple[Placed, ...]:
    """Attempts or waits at the sequence that they have where records were left out."""
    return tuple(
        replace(record, sequence=record.sequence - swallowed) for record in records
    )


def _merged_metadata(
    first: Mapping[str, Any], last: Mapping[str, Any]
) -> dict[str, Any]:
    """What the last boundary says, with the child runs of both."""
    children = [*first.get("child_runs", ()), *last.get("child_runs", ())]
    return {**last, "child_runs": children} if children else dict(last)


class AsyncCommitter(Committer):
    """Writes behind the run, in order (`async`). See Note [Nothing behind a failed
    write]."""

    def __init__(self, store: Store, fence: Fence, log: EventLog, stop: Stop) -> None:
        super().__init__(store, fence, log, stop)
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="stateknot-writer")
        self._thread.start()

    def commit(self, boundary: Boundary) -> None:
        """See the base."""
        self._raise_failure()
        if boundary.status is RunStatus.RUNNING:
            self._queue.put(lambda: self._write(boundary))
            return
        self.drain()
        self._write(boundary)

    def drain(self) -> None:
        """See the base."""
        self._queue.join()
        self._raise_failure()

    def close(self) -> None:
        """See the base."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while (job := self._queue.get()) is not None:
                try:
                    if self._failure is None:
                        job()
                except BaseException as error:  # noqa: BLE001 - raised in the drive
                    self._failure = error
                finally:
                    self._queue.task_done()
        finally:
            self.store.thread_finished()


def make_committer(
    mode: DurabilityMode, store: Store, fence: Fence, log: EventLog, stop: Stop
) -> Committer:
    """The committer of a durability mode."""
    kinds = {DurabilityMode.ASYNC: AsyncCommitter, DurabilityMode.EXIT: ExitCommitter}
    return kinds.get(mode, Committer)(store, fence, log, stop)
