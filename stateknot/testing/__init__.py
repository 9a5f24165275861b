"""Testing graphs without a database, a worker or a wait.

`run_in_memory` runs a graph to its rest, with scripted answers and a clock that moves
over timers, retries and deadlines by itself. `InMemory` is the same with the steps in
your hands, and can crash at a named point. `stateknot.testing.fixtures` has them as
pytest fixtures. See `docs/how-to/test-graphs.md`.
"""

from __future__ import annotations

from stateknot.testing.answers import in_turn
from stateknot.testing.clock import FakeClock
from stateknot.testing.points import CRASH_POINTS, Crash
from stateknot.testing.running import InMemory, run_in_memory

__all__ = [
    "CRASH_POINTS",
    "Crash",
    "FakeClock",
    "InMemory",
    "in_turn",
    "run_in_memory",
]
