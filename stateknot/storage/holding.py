"""Locking a run's row under its fence, and giving the lock back when stopped.

See Note [Stopped in a transaction].

Note [Stopped in a transaction]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A driver locks its run's row for as long as a few statements take. Stopped between two
of them (SIGSTOP, a machine that is moved), it would keep the row from whoever takes the
run over when its lease has run out, for as long as it sleeps. PostgreSQL ends such a
session after the lease's time; the process finds its connection lost when it wakes, and
its write undone. SQLite has no such bound: there a frozen process holds the write lock.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import InternalError, OperationalError, connections, transaction

from stateknot.conf import get_settings
from stateknot.errors import LeaseError
from stateknot.models import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stateknot.kernel.records import Fence

_TIMED_OUT = "25P03"
"""SQLSTATE of a session that sat idle in a transaction."""


@contextmanager
def engine_transaction(using: str) -> Iterator[None]:
    """A transaction; a session that the server ended is an OperationalError.

    The drivers call that an InternalError, which would be a fault of the engine.
    """
    try:
        with transaction.atomic(using=using):
            yield
    except InternalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _TIMED_OUT:
            raise
        raise OperationalError(str(error)) from error


def bound_lock(using: str) -> None:
    """Bound how long the current transaction may sit idle; call it before locking.

    Only where the transaction is the engine's own: in one of a caller it would bound
    what the caller does next.
    """
    connection = connections[using]
    if connection.vendor != "postgresql" or connection.savepoint_ids:
        return
    milliseconds = int(get_settings().lease_seconds * 1000)
    with connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL idle_in_transaction_session_timeout = %s", [milliseconds]
        )


def held_run(fence: Fence, using: str, *, holder: str | None = None) -> Run:
    """The row of the run that `fence` holds, locked. Raises LeaseError.

    `holder` stands in the row in place of the fence's where the lease was given away.
    """
    bound_lock(using)
    run: Run | None = (
        Run.objects.using(using)
        .select_for_update()
        .filter(
            id=fence.run_id,
            epoch=fence.epoch,
            holder=fence.holder if holder is None else holder,
        )
        .first()
    )
    if run is None:
        raise LeaseError(fence.run_id, fence.epoch)
    return run
