"""A clock that stands still until somebody moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from stateknot.runtime.clock import SystemClock

START_OF_TIME = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """The engine's clock without waiting: `sleep` moves it, chance is in the middle.

    `elapsed` are the seconds since it began, `sleeps` how long each wait of the engine
    was. Ids stay real, since stores keep them as UUIDs that rise.
    """

    def __init__(self, start: datetime = START_OF_TIME) -> None:
        self.start = start
        self.elapsed = 0.0
        self.sleeps: list[float] = []
        self._lock = threading.Lock()
        self._system = SystemClock()

    def now(self) -> datetime:
        """The time, aware."""
        return self.start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        """Seconds since the clock began."""
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        """Move on by `seconds` at once, and note that somebody waited."""
        with self._lock:
            self.sleeps.append(seconds)
            self.elapsed += seconds

    def advance(self, span: timedelta) -> None:
        """Let `span` pass."""
        with self._lock:
            self.elapsed += span.total_seconds()

    def advance_to(self, moment: datetime) -> None:
        """Let time pass until `moment`; a moment that has passed changes nothing."""
        left = moment - self.now()
        if left > timedelta(0):
            self.advance(left)

    def random(self) -> float:
        """The middle of [0, 1), with which jitter changes nothing."""
        return 0.5

    def new_id(self) -> str:
        """A fresh id."""
        return self._system.new_id()
