"""The clock of the executor's tests: the one that users test with."""

from __future__ import annotations

from stateknot.testing.clock import START_OF_TIME, FakeClock

__all__ = ["START_OF_TIME", "FakeClock"]
