"""Acts at once in threads of their own, and seeing that one waits for another's lock.

Owns threads with connections of their own for tests on real commits. SQLite has one
writer, who waits where its transaction begins; PostgreSQL tells who waits.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from django.db import connection, connections

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 30.0


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Do all at once, each in a thread; gives what each returned or raised."""
    start = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(index: int, act: Callable[[], Any]) -> None:
        start.wait(PATIENCE)
        try:
            results[index] = act()
        except Exception as error:  # noqa: BLE001 - what it raised is the result
            results[index] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(acts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return results


def errors(results: list[Any]) -> list[type[Exception]]:
    """The types of what was raised."""
    return [type(result) for result in results if isinstance(result, Exception)]


def wait_until_one_is_blocked() -> None:
    """Wait until another connection waits for a lock; at once on SQLite."""
    if connection.vendor != "postgresql":
        return
    deadline = time.monotonic() + PATIENCE
    while not _is_one_blocked():
        assert time.monotonic() < deadline, "nobody waits for a lock"
        time.sleep(0.01)


def _is_one_blocked() -> bool:
    with connection.cursor() as cursor:
        # pg_stat_activity would show the same for a whole transaction.
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        (count,) = cursor.fetchone()
    return bool(count)
