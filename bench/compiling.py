"""What compiling a bounded loop costs: up to the largest that there may be.

Each loop is the review of `project/examples/review.py` with another bound, once in the
closed form and once with the builder. Nothing is stored.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.graphs import Count
from bench.measuring import Sample
from project.examples import review
from stateknot import START, GraphBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (128, 256, 512, 1_024)
"""Nodes of the composed graph: two of the caller's, two of each iteration."""


def compile_closed() -> dict[str, Sample]:
    """Compose the closed form at each size."""
    return {
        f"compose {nodes:,} nodes": _timed(
            nodes, partial(review.compose, _bound(nodes))
        )
        for nodes in SIZES
    }


def compile_built() -> dict[str, Sample]:
    """Compile the same loop with the builder, handlers and digest included."""
    return {
        f"build {nodes:,} nodes": _timed(nodes, partial(_build, _bound(nodes)))
        for nodes in SIZES
    }


def _bound(nodes: int) -> int:
    return (nodes - 2) // 2


def _timed(nodes: int, work: Callable[[], Any]) -> Sample:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return Sample(unit="nodes", units=nodes, seconds=seconds, stored=False)


def _build(bound: int) -> Any:
    body = GraphBuilder("bench.body", state=Count).add_node("work", _pass)
    body.add_node("decide", _pass).add_edge(START, "work").add_edge("work", "decide")
    routes = {"retry": "again", "accept": "done"}
    body.add_conditional_edges("decide", lambda _state: "retry", routes)
    body.add_port("again").add_port("done")
    parent = GraphBuilder("bench.loop", state=Count).add_node("finish", _pass)
    parent.add_node("exhausted", _pass).add_edge(START, "review")
    parent.add_subgraph_call(
        "review",
        body,
        repeat="again",
        maximum_iterations=bound,
        returns={"again": "exhausted", "done": "finish"},
    )
    graph = parent.compile()
    return graph.digest


def _pass(_state: Count) -> None:
    """A node that is never run."""
