"""Keeping a lease while a drive runs, from a thread and a connection of its own.

The first beat comes after a third of the lease, so that a short drive costs none. What
the beat tells, that the lease was lost or that the run is to be cancelled, is kept in
the drive's `Stop`, and it was the last one: what is left of the lease is all the time a
drive has to end a run that is to be cancelled. See Note [The lease bounds a cancel].

Note [The lease bounds a cancel]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Behind a request no lease is renewed. A handler that neither asks nor ends, in a process
that is alive, is thereby treated like a process that died: once the lease ran out, the
next sweep ends the run, and whatever the handler still gives is refused by the fence. A
cancel takes `lease_seconds` and one sweep at most.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from stateknot.kernel.store import Store
    from stateknot.runtime.stopping import Stop

logger = logging.getLogger("stateknot")


class Heartbeat:
    """Renews a drive's lease until it is left."""

    def __init__(self, store: Store, stop: Stop, run_id: str) -> None:
        self._store, self._stop, self._run_id = store, stop, run_id
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
            return self._stop.beat()
        except Exception:  # the lease may still be held: try again
            logger.exception("heartbeat failed", extra={"run_id": self._run_id})
            self._store.thread_finished()
        return True
