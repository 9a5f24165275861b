"""One `migrate` at a time per database. See Note [One migrate at a time].

Note [One migrate at a time]
    A deploy starts several processes, and each may migrate. Two that find the same
    empty database both create its tables, and one fails on them. So the first takes a
    lock before it looks what there is to do, on a connection of its own; who comes
    later waits, and then finds nothing left. The lock goes with its connection, so a
    process that dies in the middle holds up nobody. It covers every app of the project,
    since the first tables that two processes fight for are not ours.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from django.db.backends.base.base import BaseDatabaseWrapper

_KEY = 0x5354_4B4E_4F54
"""The number of the lock on PostgreSQL, where such locks belong to the database."""
_PATIENCE_SECONDS = 3_600.0
_WITHOUT_LIMITS = (
    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "
    "SET LOCAL idle_in_transaction_session_timeout = 0"
)


def one_at_a_time(connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
    """Wait until no other process migrates the database of `connection`.

    Locks: until the block ends. A database that only this process sees has no lock.
    """
    if connection.vendor == "postgresql":
        return _lock_postgresql(connection)
    if connection.vendor == "sqlite" and not connection.is_in_memory_db():  # type: ignore[attr-defined]  # of this backend
        return _lock_sqlite(str(connection.settings_dict["NAME"]))
    return nullcontext()


@contextmanager
def _lock_postgresql(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Held by a transaction, so that a pooler between does not lose it."""
    with closing(connection.copy()) as own:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute(_WITHOUT_LIMITS)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_KEY])
        yield


@contextmanager
def _lock_sqlite(name: str) -> Iterator[None]:
    """Held on an empty database beside the real one, whose own lock is needed.

    The file stays: whoever waits has it open, and who came later would make another.
    """
    path = f"{name}-migrate"
    with closing(
        sqlite3.connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)
    ) as own:
        own.execute("BEGIN EXCLUSIVE")
        yield
