"""Keeping a lease while a drive runs, from a thread and a connection of its own.

The first beat comes after a third of the lease, so that a short drive costs none. When
the lease was lost, `lost` is set: the drive's next write is refused anyway, and
handlers that ask `ctx.is_cancelled()` can stop early.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from stateknot.errors import LeaseError

if TYPE_CHECKING:
    from types import TracebackType

    from stateknot.kernel.records import Fence
    from stateknot.kernel.store import Store

logger = logging.getLogger("stateknot")


class Heartbeat:
    """Renews a fence's lease until it is left."""

    def __init__(self, store: Store, fence: Fence, lost: threading.Event) -> None:
        self._store, self._fence, self._lost = store, fence, lost
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Heartbeat:
        interval = self._store.heartbeat_seconds
        if interval is not None:
            self._thread = threading.Thread(
                target=self._beat,
                args=(interval,),
                name="stateknot-heartbeat",
                daemon=True,
            )
            self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self, interval: float) -> None:
        try:
            while not self._done.wait(interval):
                if not self._renewed():
                    return
        finally:
            self._store.thread_finished()

    def _renewed(self) -> bool:
        """Renew once; a database that is away for a moment is tried again next time."""
        try:
            with self._store.atomic():
                self._store.renew(self._fence)
        except LeaseError:
            self._lost.set()
            logger.warning("lease lost", extra={"run_id": self._fence.run_id})
            return False
        except Exception:  # the lease may still be held: try again
            logger.exception("heartbeat failed", extra={"run_id": self._fence.run_id})
            self._store.thread_finished()
        return True
