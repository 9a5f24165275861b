"""The graphs that go through a worker."""

from __future__ import annotations

import time
from typing import Any

from bench.graphs import Count, short
from stateknot import START, GraphBuilder
from stateknot.registry import register


class Seen(Count):
    """When the first node was called, on the clock all processes here share."""

    at: float = 0.0


def _note(_state: Seen) -> dict[str, Any]:
    return {"at": time.monotonic()}


register(short())
register(
    GraphBuilder("bench.first", state=Seen, version="1.0.0")
    .add_node("first", _note)
    .add_sequence(START, "first")
    .compile()
)
