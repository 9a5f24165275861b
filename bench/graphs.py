"""The graphs that are measured; the same shapes that `peers.py` gives the others."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from stateknot import END, START, GraphBuilder, Interrupt, NodeContext, append

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph
    from tests.recorded_graphs import RecordedGraph

WIDTH = 16
ITEM_BYTES = 1_024
FIELD_BYTES = 1_000_000
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"


def noise(size: int) -> str:
    """Text that no database can compress much: `size` random characters of 64."""
    return "".join(random.choices(_LETTERS, k=size))  # noqa: S311 - no secret


class Count(BaseModel):
    """A number to count up to `upto`."""

    n: int = 0
    upto: int = 0


class Grown(Count):
    """A list that grows."""

    items: Annotated[list[str], append] = []


class Heavy(Count):
    """A large field that nobody writes."""

    blob: str = ""


class Asked(BaseModel):
    """What a person answered."""

    answer: str | None = None


def _is_done(state: Count) -> str:
    return "end" if state.n >= state.upto else "on"


def loop(name: str, state: type[Count], turn: Callable[..., Any]) -> CompiledGraph:
    """A loop of one node until its count is reached."""
    builder = GraphBuilder(f"bench.{name}", state=state, version="1.0.0")
    builder.add_node("turn", turn).add_edge(START, "turn")
    builder.add_conditional_edges("turn", _is_done, {"on": "turn", "end": END})
    return builder.with_recursion_limit(10_000).compile()


def chain(state: type[Count] = Count) -> CompiledGraph:
    """A loop of one node that counts."""
    return loop("chain", state, lambda s: {"n": s.n + 1})


def growing() -> CompiledGraph:
    """A loop whose node appends 1 KB."""
    pool = noise(FIELD_BYTES)

    def turn(state: Grown) -> dict[str, Any]:
        start = state.n * ITEM_BYTES % (FIELD_BYTES - ITEM_BYTES)
        return {"n": state.n + 1, "items": [pool[start : start + ITEM_BYTES]]}

    return loop("growing", Grown, turn)


def fan(width: int = WIDTH) -> CompiledGraph:
    """Rounds of `width` nodes side by side and a join that counts."""
    builder = GraphBuilder("bench.fan", state=Grown, version="1.0.0")
    names = [f"part{i:02}" for i in range(width)]
    for name in names:
        builder.add_node(name, lambda _s, ctx: {"items": [ctx.node_id]})
    builder.add_node("join", lambda s: {"n": s.n + 1})
    builder.add_edge(START, names).add_waiting_edge(names, "join")
    routes = {name: name for name in names} | {"end": END}
    builder.add_conditional_edges(
        "join", lambda s: "end" if s.n >= s.upto else names, routes
    )
    return builder.with_recursion_limit(10_000).compile()


def asking() -> CompiledGraph:
    """One question, one answer."""
    builder = GraphBuilder("bench.asking", state=Asked, version="1.0.0")

    @builder.node
    def ask(_state: Asked, ctx: NodeContext) -> Any:
        return {"answer": ctx.resume} if ctx.has_resume else Interrupt("well?")

    return builder.add_edge(START, "ask").compile()


def nested(inner: int = 5) -> CompiledGraph:
    """A loop whose node runs a child graph of `inner` supersteps."""
    child = chain()

    def turn(state: Count) -> dict[str, Any]:
        child.run({"upto": inner})
        return {"n": state.n + 1}

    return loop("nested", Count, turn)


def short() -> CompiledGraph:
    """Five nodes in a row."""
    builder = GraphBuilder("bench.short", state=Count, version="1.0.0")
    for name in "abcde":
        builder.add_node(name, lambda s: {"n": s.n + 1})
    return builder.add_sequence(START, *"abcde").compile()


def recorded(drawn: RecordedGraph) -> CompiledGraph:
    """A recorded workflow: each task a node, behind all its parents."""
    builder = GraphBuilder(f"bench.{drawn.name}", state=Count, version="1.0.0")
    roots = []
    for task, parents in enumerate(drawn.parents):
        builder.add_node(f"task{task}", lambda _state: {"n": 1})
        if parents:
            builder.add_waiting_edge([f"task{p}" for p in parents], f"task{task}")
        else:
            roots.append(f"task{task}")
    return builder.add_edge(START, roots).compile()
