"""Getting a run's events into a journal without holding the run up.

A drive puts its events into a bounded queue and goes on; one thread writes them, in
order. What does not fit is dropped and counted, what the journal refuses is counted,
and neither reaches the run. Offsets are given where the events are written, so they
stay dense.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

from stateknot.runtime.observations import observation_of

if TYPE_CHECKING:
    from datetime import datetime

    from stateknot.kernel.records import Event, RunRecord
    from stateknot.runtime.clock import Clock
    from stateknot.runtime.journal import Journal

logger = logging.getLogger("stateknot")

LONGEST_QUEUE = 1024


class Delivery:
    """Writes one run's events into `journal`; a sink. Close it to flush it."""

    def __init__(self, journal: Journal, run: RunRecord, clock: Clock) -> None:
        self.dropped = self.failed = 0
        self._journal, self._run, self._clock = journal, run, clock
        self._queue: queue.Queue[tuple[Event, datetime] | None]
        self._queue = queue.Queue(LONGEST_QUEUE)
        self._offset: int | None = None
        self._last_step: int | None = None
        self._thread = threading.Thread(
            target=self._work, name="stateknot-journal", daemon=True
        )
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Take an event; never waits and never raises."""
        try:
            self._queue.put_nowait((event, self._clock.now()))
        except queue.Full:
            self.dropped += 1

    def flush(self) -> None:
        """Wait until everything taken is written or given up."""
        self._queue.join()

    def close(self) -> None:
        """Flush, and end the thread."""
        self._queue.put(None)
        self._thread.join()
        if self.dropped or self.failed:
            logger.warning(
                "events missing from a journal",
                extra={
                    "run_id": self._run.id,
                    "dropped": self.dropped,
                    "failed": self.failed,
                },
            )

    def _work(self) -> None:
        while (taken := self._queue.get()) is not None:
            try:
                self._write(*taken)
            except Exception:
                self.failed += 1
                logger.exception("a journal failed", extra={"run_id": self._run.id})
            finally:
                self._queue.task_done()

    def _write(self, event: Event, at: datetime) -> None:
        if self._offset is None:
            self._continue()
        offset = self._offset or 0
        told = observation_of(
            self._run, event, offset=offset, at=at, last_step=self._last_step
        )
        self._journal.append(told)
        self._offset, self._last_step = offset + 1, told.step

    def _continue(self) -> None:
        """Go on behind what earlier drives of the run told."""
        before = self._journal.read_from(self._run.id, 0)
        self._offset = before[-1].offset + 1 if before else 0
        self._last_step = before[-1].step if before else None
