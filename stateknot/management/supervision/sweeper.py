"""A thread that sweeps now and then, whatever the cluster does.

Owns the rhythm and what a failing pass means: it is logged, and the next one comes.
Must not know what a sweep finds. Read `stateknot/runtime/recovery.py` next.

It stands outside the cluster because a hung cluster's schedules still fire and run
nothing, and in a thread of its own because a database that is away must not keep the
supervisor from watching its cluster or from ending.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django.db import close_old_connections, connections

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` every so many seconds until it is closed."""

    def __init__(self, sweep: Callable[[], object], *, every: float) -> None:
        self._sweep = sweep
        self._every = every
        self._closed = threading.Event()
        # A daemon: a pass that waits for a dead database does not hold up the end.
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    def start(self) -> None:
        """Begin with the first pass at once."""
        self._thread.start()

    def close(self, *, timeout: float = 1.0) -> None:
        """Begin no further pass; wait `timeout` seconds for one that is under way."""
        self._closed.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                self._pass()
                self._closed.wait(self._every)
        finally:
            connections.close_all()

    def _pass(self) -> None:
        try:
            close_old_connections()
            self._sweep()
        except Exception:
            logger.exception("The sweep failed; the next one is in %g s", self._every)
            connections.close_all()
