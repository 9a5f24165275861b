"""Whether a drive must stop: its lease was lost, or its run is to be cancelled.

One `Stop` belongs to one drive. The heartbeat and the committer note in it what the
store tells them, so that asking costs no query; `ctx.is_cancelled()` and the runners
ask it. Where leases do not expire there is no heartbeat, and asking is free: there the
store itself is asked.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from stateknot.errors import LeaseError, RunCancelledError

if TYPE_CHECKING:
    from stateknot.kernel.records import Fence
    from stateknot.kernel.store import Store

logger = logging.getLogger("stateknot")

POLL_SECONDS = 0.25
"""How often a drive looks whether an async handler must be stopped."""
GRACE_SECONDS = 5.0
"""How long an async handler that was cancelled may take to clean up."""


class Stop:
    """What a drive knows of its end; set from any thread, and never unset."""

    def __init__(self, store: Store, fence: Fence) -> None:
        self._store, self._fence = store, fence
        self._lost, self._cancelled = threading.Event(), threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether the store said that the run is to be cancelled."""
        return self._cancelled.is_set()

    def is_set(self) -> bool:
        """Whether the drive must stop."""
        if self._store.heartbeat_seconds is None and not self._cancelled.is_set():
            self._renew()
        return self._lost.is_set() or self._cancelled.is_set()

    def note(self, is_to_be_cancelled: bool) -> None:
        """Keep what a write of the store told."""
        if is_to_be_cancelled:
            self._cancelled.set()

    def renew(self) -> None:
        """Renew the lease. Raises LeaseError or RunCancelledError for a drive that must
        stop."""
        self.note(self._store.renew(self._fence))
        self.require_going()

    def beat(self) -> bool:
        """Renew the lease; False when the drive must stop and so the lease may end."""
        with self._store.atomic():
            self._renew()
        if self._lost.is_set():
            logger.warning("lease lost", extra={"run_id": self._fence.run_id})
        return not (self._lost.is_set() or self._cancelled.is_set())

    def _renew(self) -> None:
        try:
            self.note(self._store.renew(self._fence))
        except LeaseError:
            self._lost.set()

    def require_whole(self, was_told: bool, error: Exception | None = None) -> None:
        """Drop the end of a handler that stopped early because it was told to.

        What it gives then is no result, and what it raises is no failure: what ends the
        drive is raised instead.
        """
        if was_told or isinstance(error, RunCancelledError):
            self.require_going()

    def require_going(self) -> None:
        """Raise what ends the drive, if something does."""
        if not self.is_set():
            return
        if self._cancelled.is_set():
            raise RunCancelledError(self._fence.run_id)
        raise LeaseError(self._fence.run_id, self._fence.epoch)
