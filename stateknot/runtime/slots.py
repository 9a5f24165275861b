"""How many runs may be driven at once."""

from __future__ import annotations

from stateknot.kernel.records import Slots
from stateknot.registry import find_graph


def slots_of(graph_id: str) -> Slots:
    """The limits that a claim of a run of `graph_id` is under."""
    # Read here: `stateknot.testing` drives runs where no Django is installed.
    from stateknot.conf import get_settings

    settings = get_settings()
    graph = find_graph(graph_id)
    in_code = graph.config.max_running if graph is not None else None
    return Slots(
        of_graph=settings.max_running.get(graph_id, in_code),
        in_all=settings.max_running_total,
    )
