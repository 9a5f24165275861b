"""A bounded loop with two ends: review a counter at most three times.

`BODY` is reviewed work: `work` counts, `decide` accepts or asks for another round.
`PARENT` calls it and says where a success and where an exhausted loop lead. Composed,
three iterations of the body stand side by side as six ordinary nodes, and nothing at
run time knows that they were a loop. Definitions are in the closed form, so that
`DIGEST` names them byte for byte. Read `graphs.py` next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from stateknot import Command, CompiledGraph, NodeError
from stateknot.composition import (
    GraphComposition,
    GraphDefinition,
    GraphSubgraphCall,
    SharedStateSubgraph,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

GRAPH_ID: Final = "examples.review"
DIGEST: Final = (
    "sha256:47da97c4899553971858c24f6282e1e191732217beda0f247b5120d48f546b8f"
)
"""What the composition of three iterations must have; a change of any part shows."""
ITERATIONS: Final = 3
ENOUGH: Final = 2

OWNER = {"issuer": "https://example.com/stateknot", "subject": "review-service"}
SCHEMA = {
    "id": "https://example.com/schemas/review-counter/1.0.0",
    "version": "1.0.0",
    "digest": "sha256:062b5ff4bff705f56c526a6812cdfbe24e38d37172a20a01f96b967111bd25d7",
}


def _capability(name: str) -> dict[str, Any]:
    return {"owner": OWNER, "capability": {"name": name, "version": "1.0.0"}}


SHARED: dict[str, Any] = {
    "input_schema": SCHEMA,
    "state_schema": SCHEMA,
    "update_schema": SCHEMA,
    "output_schema": SCHEMA,
    "reducer": {
        "identity": _capability("review.counter-reducer"),
        "definition_digest": "sha256:"
        "b910eb1e90a3aed72b15865c205dbe5aa1ff1087249643091b8134210077adb4",
    },
    "limits": {"maximum_supersteps": "7", "maximum_parallelism": 1},
}
"""What body and parent agree on. Seven supersteps are the longest path: three times
two, and the end."""

BODY = {
    "identity": _capability("review.body"),
    **SHARED,
    "entry_nodes": ["work"],
    "nodes": [
        {"node_id": "work", "continue_to": ["decide"], "routes": [], "terminal": False},
        {
            "node_id": "decide",
            "routes": [
                {"route_id": "accept", "successors": ["done"]},
                {"route_id": "retry", "successors": ["again"]},
            ],
            "terminal": False,
        },
        {"node_id": "again", "routes": [], "terminal": True},
        {"node_id": "done", "routes": [], "terminal": True},
    ],
}
"""`again` and `done` are return ports: they never run, they say how the body ended."""

PARENT = {
    "identity": _capability("review.workflow"),
    **SHARED,
    "entry_nodes": ["review"],
    "nodes": [
        {
            "node_id": "review",
            "routes": [
                {"route_id": "again", "successors": ["exhausted"]},
                {"route_id": "done", "successors": ["finish"]},
            ],
            "terminal": False,
        },
        {"node_id": "exhausted", "routes": [], "terminal": True},
        {"node_id": "finish", "routes": [], "terminal": True},
    ],
}


class Counter(BaseModel):
    """How often the work was done; also the form of an update, which adds to it."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(ge=0, le=3)


def add_counts(
    counter: Counter, updates: Sequence[tuple[str, dict[str, int]]]
) -> dict[str, int]:
    """The whole-state reducer: the updates of a superstep are added up."""
    return {"count": counter.count + sum(update["count"] for _, update in updates)}


def work(_counter: Counter) -> dict[str, int]:
    """Do it once more."""
    return {"count": 1}


def decide(counter: Counter) -> Command:
    """Accept when there is enough, by the body's own labels."""
    return Command(route="accept" if counter.count >= ENOUGH else "retry")


def finish(counter: Counter) -> Command:
    """End with the count as the run's output."""
    return Command(output={"count": counter.count})


def exhausted(_counter: Counter) -> None:
    """End a loop that used up its iterations: on purpose, and with a code."""
    raise NodeError("review.iterations_exhausted", "the review never accepted")


HANDLERS = {"work": work, "decide": decide, "finish": finish, "exhausted": exhausted}


def compose(iterations: int = ITERATIONS) -> GraphComposition:
    """The parent with so many iterations of the body in place of its call-site."""
    template = SharedStateSubgraph(GraphDefinition.from_dict(BODY))
    call = GraphSubgraphCall.bounded_loop("review", template, "again", iterations)
    return GraphComposition.compile(GraphDefinition.from_dict(PARENT), [call])


def build_graph(iterations: int = ITERATIONS) -> CompiledGraph:
    """The composition with its handlers."""
    return CompiledGraph.from_definition(
        compose(iterations),
        handlers=HANDLERS,
        state=Counter,
        update=Counter,
        reducer=add_counts,
        graph_id=GRAPH_ID,
    )
