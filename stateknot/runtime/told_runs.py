"""Collecting the child runs of a superstep, from whichever thread they end in."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.runtime.execution import ChildRun


class ToldRuns:
    """The child runs of a superstep in completion order, told from any thread."""

    def __init__(self) -> None:
        self._runs: list[ChildRun] = []
        self._lock = threading.Lock()

    def tell(self, run: ChildRun) -> None:
        """Add a run that came to its end or paused."""
        with self._lock:
            self._runs.append(run)

    def note_usage(self, run_id: str, usage: Mapping[str, float]) -> None:
        """Say what a run that was told used."""
        with self._lock:
            self._runs = [
                replace(run, usage=dict(usage)) if run.run_id == run_id else run
                for run in self._runs
            ]

    def take(self) -> list[ChildRun]:
        """What was told since the last call."""
        with self._lock:
            taken, self._runs = self._runs, []
        return taken
