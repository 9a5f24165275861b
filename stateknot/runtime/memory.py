"""The memory store with this machine's clock: what `MemoryCheckpointer()` gives."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stateknot.kernel.memory import MemoryStore
from stateknot.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime


def _has_django() -> bool:
    apps = sys.modules.get("django.apps")
    return apps is not None and apps.apps.ready


@contextmanager
def project_transaction() -> Iterator[Callable[[], None]]:
    """A transaction of the engine's database, where Django is set up with one.

    What a transactional node writes there is undone when its attempt fails, also where
    the run itself is kept in memory. Gives what undoes it.
    """
    if _has_django():
        from stateknot.conf import get_settings
        from stateknot.storage.together import has_database, node_transaction

        using = get_settings().database
        if has_database(using):
            with node_transaction(using) as undo:
                yield undo
            return
    yield lambda: None


class MemoryCheckpointer(MemoryStore):
    """Keeps threads in this process, for tests and runs that need not survive it.

    Transactional nodes write inside a transaction of the project's database here too;
    but what they did outlives the process, and this store does not.
    """

    beside = staticmethod(project_transaction)

    def thread_finished(self) -> None:
        """See the port: close the connections that handlers opened in this thread."""
        if _has_django():
            from django.db import connections

            connections.close_all()

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        super().__init__(now or SystemClock().now)
