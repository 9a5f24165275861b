"""A clock that moves only when the engine sleeps, for tests about waiting."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from stateknot.runtime.clock import SystemClock

START_OF_TIME = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """The engine's `Clock` without waiting: `sleep` moves it, chance is in the middle.

    Ids stay real, since stores keep them as UUIDs that rise.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.sleeps: list[float] = []
        self._lock = threading.Lock()
        self._system = SystemClock()

    def now(self) -> datetime:
        return START_OF_TIME + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.sleeps.append(seconds)
            self.elapsed += seconds

    def random(self) -> float:
        """The middle of [0, 1), with which jitter changes nothing."""
        return 0.5

    def new_id(self) -> str:
        return self._system.new_id()
