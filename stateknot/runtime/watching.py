"""Who is told of a drive beside its live sinks: a journal, a status store.

`Watch` is made for each drive of a graph that has either. It never fails the run.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus
from stateknot.runtime.delivery import Delivery
from stateknot.runtime.statuses import StatusTeller

if TYPE_CHECKING:
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import EventSink, RunConfig

logger = logging.getLogger("stateknot")


class Watch:
    """What the journal and the status store of a graph hear of one run."""

    def __init__(self, config: RunConfig, store: Store, run: RunRecord) -> None:
        self._store, self._run = store, run
        self._delivery: Delivery | None = None
        self._statuses: StatusTeller | None = None
        if config.journal is not None:
            self._delivery = Delivery(config.journal, run, config.clock)
        if config.status_store is not None:
            self._statuses = self._teller(config)

    def _teller(self, config: RunConfig) -> StatusTeller | None:
        try:
            return StatusTeller(config.status_store, self._run, config.clock)
        except Exception:
            logger.exception("a status store failed", extra={"run_id": self._run.id})
            return None

    @property
    def sinks(self) -> list[EventSink]:
        """Where events go."""
        found: list[EventSink | None] = [self._delivery, self._statuses]
        return [sink for sink in found if sink is not None]

    def rest(self, status: RunStatus) -> None:
        """Say how the drive came to rest."""
        if self._statuses is None:
            return
        try:
            self._statuses.rest(status, self._questions(status))
        except Exception:
            logger.exception("a status store failed", extra={"run_id": self._run.id})

    def _questions(self, status: RunStatus) -> tuple[str, ...]:
        if status is not RunStatus.INTERRUPTED:
            return ()
        waits = self._store.list_waits(self._run.thread_id, self._run.namespace)
        return tuple(
            wait.public_id
            for wait in waits
            if wait.status is WaitStatus.OPEN and wait.kind is WaitKind.INTERRUPT
        )

    def close(self) -> None:
        """Wait until the journal has everything."""
        if self._delivery is not None:
            self._delivery.close()
