"""Journals of observations: one in memory, and the store's own, read alike.

`with_event_journal` hands a graph any object with these two methods. The store keeps
its journal in any case, in the transactions of the boundaries; `StoreJournal` reads it.
Read `delivery.py` for how observations get into a journal without holding a run up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from stateknot.runtime.observations import observation_of

if TYPE_CHECKING:
    from stateknot.kernel.store import Store
    from stateknot.runtime.observations import Observation


class Journal(Protocol):
    """Keeps the observations of runs, in order."""

    def append(self, observation: Observation) -> int:
        """Keep an observation; gives its offset."""
        ...

    def read_from(self, run_id: str, offset: int = 0) -> list[Observation]:
        """What `run_id` told from `offset` on, in order; empty for an unknown run."""
        ...


class MemoryJournal:
    """A journal in this process, for tests and tools."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Observation]] = {}
        self._lock = threading.Lock()

    def append(self, observation: Observation) -> int:
        """See the protocol."""
        with self._lock:
            kept = self._runs.setdefault(observation.run_id, [])
            kept.append(observation)
            return len(kept) - 1

    def read_from(self, run_id: str, offset: int = 0) -> list[Observation]:
        """See the protocol."""
        with self._lock:
            return self._runs.get(run_id, [])[max(offset, 0) :]


class StoreJournal:
    """The journal that a store keeps of each run; the engine alone writes it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def read_from(self, run_id: str, offset: int = 0) -> list[Observation]:
        """See the protocol."""
        run = self.store.find_run(run_id)
        if run is None:
            return []
        found: list[Observation] = []
        last_step: int | None = None
        for row in self.store.list_journal(run_id):
            for place, event in enumerate(row.events, start=row.first_event):
                told = observation_of(
                    run, event, offset=place, at=row.recorded_at, last_step=last_step
                )
                last_step = told.step
                found.append(told)
        return [told for told in found if told.offset >= offset]
