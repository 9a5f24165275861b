"""The graphs that this process has code for, by id and digest, and their schedules.

Every installed app's `graphs.py` is imported when Django starts and registers its
graphs here; a script without Django calls `register` itself. Several revisions of one
graph may stand side by side.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stateknot.errors import NotFoundError, ScheduleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.schedules import CronSchedule

_lock = threading.Lock()
_graphs: dict[str, dict[str, CompiledGraph]] = {}
_schedules: dict[str, tuple[str, CronSchedule]] = {}


def register(
    graph: CompiledGraph,
    superseded: Sequence[CompiledGraph] = (),
    *,
    schedules: Sequence[CronSchedule] = (),
) -> CompiledGraph:
    """Make `graph` the newest revision of its id, and return it.

    `superseded` are older revisions that runs are still pinned to, `schedules` start
    the graph by themselves. Registering a revision again changes nothing. Raises
    ScheduleError for a name that another graph's schedule has, StateError for an input
    that does not fit the graph's state.
    """
    for schedule in schedules:
        graph.blueprint.fold.initial(schedule.input)
    with _lock:
        for schedule in schedules:
            owner, _ = _schedules.get(schedule.name, (graph.graph_id, schedule))
            if owner != graph.graph_id:
                raise ScheduleError(
                    f"schedule {schedule.name!r} starts {owner!r} already; names are "
                    "unique in a project",
                    path="name",
                )
            _schedules[schedule.name] = (graph.graph_id, schedule)
        revisions = _graphs.setdefault(graph.graph_id, {})
        for old in superseded:
            revisions.setdefault(old.digest, old)
        revisions.setdefault(graph.digest, graph)
    return graph


def get_graph(
    graph_id: str, *, digest: str | None = None, version: str | None = None
) -> CompiledGraph:
    """The newest revision of a graph, or the one of that digest or version.

    Raises NotFoundError naming what this process has.
    """
    found = find_graph(graph_id, digest=digest, version=version)
    if found is not None:
        return found
    revisions = _graphs.get(graph_id)
    if not revisions:
        known = ", ".join(sorted(_graphs)) or "none"
        raise NotFoundError(f"no graph {graph_id!r} is registered; registered: {known}")
    wanted = digest or f"version {version}"
    known = ", ".join(f"{g.version} {g.digest}" for g in revisions.values())
    raise NotFoundError(f"graph {graph_id!r} has no {wanted}; registered: {known}")


def find_graph(
    graph_id: str, *, digest: str | None = None, version: str | None = None
) -> CompiledGraph | None:
    """The newest revision that matches, or None."""
    revisions = _graphs.get(graph_id, {})
    if digest is not None:
        return revisions.get(digest)
    matching = [g for g in revisions.values() if version in (None, g.version)]
    return matching[-1] if matching else None


def list_graphs() -> list[CompiledGraph]:
    """Every registered revision, by graph id, the newest of each last."""
    return [
        graph for graph_id in sorted(_graphs) for graph in _graphs[graph_id].values()
    ]


def list_schedules() -> list[tuple[str, CronSchedule]]:
    """Every declared schedule with the id of the graph that it starts."""
    return [_schedules[name] for name in sorted(_schedules)]
