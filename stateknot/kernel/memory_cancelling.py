"""Ending runs of the memory store as cancelled, with everything they began.

Works under the store's lock. Read `cancelling.py` for what a request makes of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.cancelling import cancelled, requested, without_ends
from stateknot.kernel.memory_queueing import MemoryQueue
from stateknot.kernel.once import lost_if_begun
from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.memory_rows import MemoryRun
    from stateknot.kernel.records import Event


class MemoryCanceller(MemoryQueue):
    """What the memory store does to a run that is to be cancelled."""

    def _cancel(self, run: MemoryRun, reason: str, actor: str) -> None:
        """End a run, or ask whoever holds it to, and its children likewise."""
        is_new = not run.record.is_to_be_cancelled
        if is_new:
            run.change(cancel_requested_at=self.now(), cancel_reason=reason)
        asked = (requested(reason),) if is_new else ()
        if run.holder is None:
            self._ended_cancelled(run, asked, actor)
        elif is_new:
            run.note(asked, self.now(), None, actor)
            for child in self._family(run):
                self._cancel(child, reason, actor)

    def _ended_cancelled(
        self, run: MemoryRun, events: Sequence[Event], actor: str = ""
    ) -> bool:
        """End a run that somebody asked to cancel; False, and nothing, for another."""
        if not run.record.is_to_be_cancelled:
            return False
        told = (*without_ends(events), self._close_family(run))
        run.note(told, self.now(), None, actor)
        run.end(RunStatus.CANCELLED, None, self.now())
        run.change(wake_at=None)
        self._begin_next(self._threads[run.record.thread_id])
        return True

    def _close_family(self, run: MemoryRun) -> Event:
        """End a run's children, close what they and it wait for, and tell the end."""
        reason = run.record.cancel_reason
        for child in self._family(run):
            asked_at = child.record.cancel_requested_at or self.now()
            child.change(cancel_requested_at=asked_at, cancel_reason=reason)
            self._ended_cancelled(child, ())
        for attempt in list(run.attempts.values()):
            lost = lost_if_begun(attempt, self.now())
            run.undo.put(run.attempts, attempt.id, lost)
        thread = self._threads[run.record.thread_id]
        return cancelled(run.record.id, reason, thread.close_waits_of(run.record))

    def _family(self, run: MemoryRun) -> list[MemoryRun]:
        """The run's children and theirs that have not ended; only a root has any."""
        return [
            other
            for other in self._runs.values()
            if other.record.root_run_id == run.record.id
            and other is not run
            and other.record.status.is_holding
        ]
