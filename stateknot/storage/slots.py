"""How many runs may be driven at once: asked when a run is claimed.

A slot is nothing but a live lease, so it is freed by whatever ends a lease: the run's
rest, its release, or time. See Note [Slots are leases].

Note [Slots are leases]
~~~~~~~~~~~~~~~~~~~~~~~
A counter beside the runs would have to be given back by a worker that may be dead. What
is counted is the leases that are live by the database's clock. Two claims that count at
the same time would both find the last slot free, so claims under a limit go one at a
time: under an advisory lock of the transaction on PostgreSQL, where SQLite has one
writer anyway.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from django.db import connections

from stateknot.models import Run

if TYPE_CHECKING:
    from stateknot.kernel.records import Slots

_LOCKS = 0x534B
"""The first half of the keys of our advisory locks; the second is the graph's."""


def has_slot(run: Run, slots: Slots, using: str) -> bool:
    """Whether `run` may be driven beside those that are.

    Locks: the count of all runs, then that of the graph's, until the transaction ends.
    """
    if run.parent_run_id is not None:
        return True
    others = Run.objects.using(using).driven().exclude(id=run.id)
    if slots.in_all is not None:
        _lock("", using)
        if others[: slots.in_all].count() >= slots.in_all:
            return False
    if slots.of_graph is not None:
        _lock(run.graph_id, using)
        of_graph = others.filter(graph_id=run.graph_id)
        return bool(of_graph[: slots.of_graph].count() < slots.of_graph)
    return True


def _lock(graph_id: str, using: str) -> None:
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    key = zlib.crc32(graph_id.encode()) - (1 << 31)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, key])


def can_spread(using: str) -> bool:
    """Whether steps can be spread over workers that share this database.

    SQLite has one writer: workers would wait for each other at every result.
    """
    return bool(connections[using].vendor == "postgresql")
