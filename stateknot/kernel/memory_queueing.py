"""Runs of the memory store that begin once their thread is free.

Works under the store's lock. A queued run is no run of its thread yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.memory_reading import MemoryReader
from stateknot.kernel.memory_rows import MemoryRun, superseded
from stateknot.kernel.queueing import begun, queued

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from stateknot.kernel.memory_threads import MemoryThread
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.writes import Admission


class MemoryQueue(MemoryReader):
    """What waits for threads; the oldest first, whichever thread it waits for."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self.now = now
        self._admissions: dict[str, Admission] = {}

    def _queue(self, thread: MemoryThread, admission: Admission) -> RunRecord:
        """Keep a run for later; it has no checkpoint yet."""
        holder = thread.holding_run(())
        run = MemoryRun.queued(thread, admission, self.now())
        told = (*admission.events, queued(holder.id if holder else ""))
        run.note(told, self.now(), None, admission.actor)
        thread.undo.put(self._runs, run.record.id, run)
        thread.undo.put(self._admissions, run.record.id, admission)
        return run.record

    def _is_awaited(self, thread: MemoryThread) -> bool:
        return self._next(thread) is not None

    def _next(self, thread: MemoryThread) -> MemoryRun | None:
        if not self._admissions:
            return None
        runs = (self._runs[run_id] for run_id in self._admissions)
        mine = (run for run in runs if run.record.thread_id == thread.id)
        waiting = (run for run in mine if run.record.is_queued)
        return next((r for r in waiting if r.record.status.is_holding), None)

    def _begin_next(self, thread: MemoryThread) -> None:
        """Begin what waits longest for a thread, if something does and it is free."""
        run = self._next(thread)
        if run is None or thread.holding_run(()) is not None:
            return
        admission = self._admissions[run.record.id]
        draft = run.begin(thread, admission, self.now())
        told = (begun(), *superseded(thread, ()))
        run.note(told, self.now(), draft.id)
        thread.enter(run)
