"""Whose turn it is: which run a worker drives with the wake-up that it got.

A wake-up names a run, but is only a hint. `choose` may give another one that waits:
first those of a higher priority, then every graph with the same chance, within a graph
the oldest first. See Note [A wake-up is a ticket].

Note [A wake-up is a ticket]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Queues are first in, first out, and 10,000 wake-ups of one graph stand before the one of
another. As each waiting run has a wake-up in the queue, it does not matter which of
them a worker takes, as long as each is used for one run: so the worker that got one
looks at the head of each graph's line and draws. One that finds its run done is used
for the next in line. Where a limit is reached, wake-ups are used up without a run; who
frees a slot therefore wakes the next.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from django.db.models import BooleanField, Case, Q, Subquery, When
from django.db.models.functions import Now

from stateknot.conf import get_settings
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import Run
from stateknot.registry import list_graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_AT_REST = ("interrupted", "completed", "failed", "cancelled")


def graph_limits() -> dict[str, int]:
    """The limit of each graph that has one, as far as this process knows."""
    in_code = {graph.graph_id: graph.config.max_running for graph in list_graphs()}
    known = {**in_code, **get_settings().max_running}
    return {graph_id: most for graph_id, most in known.items() if most is not None}


def free_slots(using: str) -> tuple[dict[str, int], int | None]:
    """The free slots of each graph that has a limit, and those of all together."""
    driven = Run.objects.using(using).driven()
    free = {
        graph_id: max(0, most - driven.filter(graph_id=graph_id)[:most].count())
        for graph_id, most in graph_limits().items()
    }
    total = get_settings().max_running_total
    return free, None if total is None else max(0, total - driven[:total].count())


def choose(
    run_id: str | None,
    *,
    using: str,
    tried: Collection[str] = (),
    draw: Callable[[], float] = random.random,
) -> str | None:
    """The run to drive with a wake-up for `run_id`, or None when nobody waits.

    Without a `run_id` the next in line. `draw` gives a number from 0 up to 1. What is
    chosen may be claimed by another worker meanwhile: ask again with it in `tried`.
    """
    heads = _heads(run_id, using, tried)
    named = next((row for row in heads if str(row["id"]) == run_id), None)
    if named is not None and (named["is_driven"] or named["status"] in _AT_REST):
        heads.remove(named)
    elif named is not None and named["status"] != RunStatus.PENDING.value:
        return run_id
    free, total = free_slots(using)
    if total == 0:
        return None
    waiting = [row for row in heads if free.get(row["graph_id"]) != 0]
    if not waiting:
        return None
    best = max(row["priority"] for row in waiting)
    waiting = [row for row in waiting if row["priority"] == best]
    graphs = sorted({row["graph_id"] for row in waiting})
    drawn = graphs[int(draw() * len(graphs))]
    line = [row for row in waiting if row["graph_id"] == drawn]
    # Workers whose wake-ups are of one graph would else all claim the head of its line.
    return str((named if named in line else line[0])["id"])


def _heads(
    run_id: str | None, using: str, tried: Collection[str]
) -> list[dict[str, Any]]:
    """The named run and the head of each graph's line, in one query."""
    runs = Run.objects.using(using)
    digests: dict[str, list[str]] = {}
    for graph in list_graphs():
        digests.setdefault(graph.graph_id, []).append(graph.digest)
    wanted = Q(id=run_id) if run_id is not None and run_id not in tried else Q()
    for graph_id, known in digests.items():
        line = runs.in_line().filter(graph_id=graph_id, revision__digest__in=known)
        wanted |= Q(id=Subquery(line.exclude(id__in=tried).values("id")[:1]))
    if not wanted:
        return []
    is_driven = Case(
        When(lease_expires_at__gt=Now(), then=True),
        default=False,
        output_field=BooleanField(),
    )
    found: Any = (
        runs.filter(wanted)
        .annotate(is_driven=is_driven)
        .values("id", "graph_id", "priority", "status", "is_driven")
    )
    return list(found.order_by("-priority", "created_at"))
