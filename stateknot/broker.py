"""The queue on PostgreSQL: django-q2's ORM broker, told of new rows instead of asking.

Owns how a row of the queue is put in, taken and waited for. Knows no runs: a message is
whatever django-q2 gives. `Q_CLUSTER["broker_class"]` names it; on SQLite the stock ORM
broker stands (a check says so). Read `stateknot/runtime/waking.py` next for what is
sent, and `stateknot/management/supervision/cluster.py` for who takes it.

Note [Waking over NOTIFY]: the stock broker asks for rows every `poll` seconds, which
is either late or busy. NOTIFY is sent at the commit of the transaction that put the row
in, and not at all if that rolls back, so one who is told always sees the row. It is no
more than a hint: rows that come back after `retry`, and those whose notification was
lost with a connection or in a pooler that shares connections, are found by the question
that is asked every `poll` seconds anyway. LISTEN comes before the first question on a
connection, so that nothing falls between the two.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError, connections, transaction
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

from stateknot.management.supervision.tether import tether, tether_forks

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("stateknot")

CHANNEL = "stateknot_queue"
LONGEST_WAIT_SECONDS = 0.5
"""So long a stop of the cluster may find the pusher waiting; it costs no query."""
RECONNECT_SECONDS = 1.0

_TABLE = f'"{OrmQ._meta.db_table}"'
# All moments are the database's: clocks of two machines differ.
_PUT = (
    f"INSERT INTO {_TABLE} (key, payload, lock) VALUES (%s, %s, statement_timestamp())"  # noqa: S608
    " RETURNING id, pg_notify(%s, '')"
)
_TAKE = (
    f"UPDATE {_TABLE} SET lock = statement_timestamp() + make_interval(secs => %s)"  # noqa: S608
    f" WHERE id IN (SELECT id FROM {_TABLE} WHERE key = %s"
    " AND lock <= statement_timestamp() ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)"
    " RETURNING id, payload"
)


class NotifyingBroker(ORM):  # type: ignore[misc] # django-q2 has no types
    """Ordered, without waiting for another's locks, woken by the commit itself.

    Two clusters never take one row, and neither waits for the other: rows that another
    transaction holds are passed over. Under plain `qcluster` too, the cluster ends with
    its leader. See Note [Waking over NOTIFY].
    """

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key=list_key)
        self._heard: Any = None
        self._asks_at = 0.0

    def ping(self) -> bool:
        """Say that the broker is there; the sentinel calls it before it forks."""
        if multiprocessing.parent_process() is not None:
            tether(os.getppid(), on_death=signal.SIGKILL)
            tether_forks(1)
        return True

    def enqueue(self, task: str) -> int:
        """Put a message in and tell of it at commit; return the row's id.

        Transaction: the caller's, on the engine's database.
        """
        self.get_connection()
        key = self.list_key or Conf.CLUSTER_NAME
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(_PUT, [key, task, CHANNEL])
            return int(cursor.fetchone()[0])

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take the oldest messages that are due, or wait a moment for the next one.

        Returns (id, message) pairs, or None after `LONGEST_WAIT_SECONDS` without any. A
        database that is away is waited for in the same way: django-q2 would otherwise
        pause for ten seconds and fork a new pusher.
        """
        try:
            return self._take_or_wait()
        except (OperationalError, InterfaceError) as error:
            logger.warning("queue not reachable: %s", str(error).strip())
            self._forget_connection()
            time.sleep(RECONNECT_SECONDS)
            return None

    def _take_or_wait(self) -> list[tuple[int, str]] | None:
        if time.monotonic() >= self._asks_at:
            taken = self._take()
            if taken:
                return taken
            self._asks_at = time.monotonic() + Conf.POLL
        if self._was_told():
            self._asks_at = 0.0
        return None

    def _take(self) -> list[tuple[int, str]]:
        connection = self._listening()
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [Conf.RETRY, self.list_key, Conf.BULK])
            return sorted(cursor.fetchall())

    def _listening(self) -> BaseDatabaseWrapper:
        """Return this process's connection, which is told of new rows.

        Django may replace what is behind it (its age, an error, a fork): the new one
        has to LISTEN again.
        """
        self.get_connection()
        connection = connections[Conf.ORM]
        connection.ensure_connection()
        if connection.connection is not self._heard:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
                # A crash of the server that forgets who took a message brings it
                # back, which is allowed; waiting for the disk would delay each one.
                cursor.execute("SET synchronous_commit TO off")
            self._heard = connection.connection
        return connection

    def _was_told(self) -> bool:
        """Wait for a notification, on a connection that has nothing else to do."""
        if self._heard is None or self._heard is not connections[Conf.ORM].connection:
            return True
        wait = min(LONGEST_WAIT_SECONDS, max(0.0, self._asks_at - time.monotonic()))
        with connections[Conf.ORM].wrap_database_errors:
            return bool(list(self._heard.notifies(timeout=wait, stop_after=1)))

    def _forget_connection(self) -> None:
        self._heard, self._asks_at = None, 0.0
        if transaction.get_autocommit(using=Conf.ORM):
            connections[Conf.ORM].close()
