"""The state and the handlers from which the executor's tests build their graphs.

A handler made here says in `log` that it ran and adds to `total`, so that a test sees
from the final state who ran, in which order, and how often.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from stateknot import START, Command, GraphBuilder, Interrupt, NodeContext, add, append

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph

PATIENCE = 20.0
"""Seconds that a handler waits for another before the test fails: never used up."""


class Tally(BaseModel):
    """`total` adds up, `log` grows, `mark` is overwritten."""

    total: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []
    mark: str = ""


def new_builder(graph_id: str = "tests.sample", state: type[BaseModel] = Tally) -> Any:
    """Begin a graph over `state`."""
    return GraphBuilder(graph_id, state=state)


def note(name: str, amount: int = 0) -> Callable[[Tally], dict[str, Any]]:
    """Make a handler that logs `name` and adds `amount`."""

    def handler(_state: Tally) -> dict[str, Any]:
        return {"log": [name], "total": amount}

    return handler


def go(*targets: Any) -> Callable[[Tally], Command]:
    """Make a handler that only leads to `targets`."""

    def handler(_state: Tally) -> Command:
        return Command(goto=list(targets))

    return handler


def note_arg(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
    """Log the node and its Send argument, and add the argument."""
    return {"log": [f"{ctx.node_id}:{ctx.send_arg}"], "total": ctx.send_arg or 0}


def add_line(builder: Any, *names: str) -> Any:
    """Lead from START through logging nodes of these names."""
    for name in names:
        builder.add_node(name, note(name, 1))
    return builder.add_sequence(START, *names)


def add_fan(builder: Any, nodes: dict[str, Callable[..., Any]]) -> Any:
    """Lead from START to all `nodes` at once; their ids give the active order."""
    for name, handler in nodes.items():
        builder.add_node(name, handler)
    return builder.add_edge(START, list(nodes))


class Flaky:
    """A handler that raises `error` on its first `failures` calls, then logs its name.

    `calls` counts all of them; `seen` are the states it was given.
    """

    def __init__(self, name: str, failures: int = 1, error: Any = ValueError) -> None:
        self.name, self.failures, self.error = name, failures, error
        self.calls = 0
        self.seen: list[Tally] = []

    def __call__(self, state: Tally) -> dict[str, Any]:
        self.calls += 1
        self.seen.append(state)
        if self.calls <= self.failures:
            raise self.error(f"{self.name} failed on call {self.calls}")
        return {"log": [self.name], "total": 1}


class Asker:
    """A handler that asks `payload` and then logs and adds the answer.

    `calls` counts how often it was called, answered or not.
    """

    def __init__(self, payload: Any = "how much?") -> None:
        self.payload = payload
        self.calls = 0

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.calls += 1
        if not ctx.has_resume:
            return Interrupt(self.payload)
        return {"log": [f"{ctx.node_id}={ctx.resume}"], "total": ctx.resume or 0}


class Counted:
    """A handler that counts its calls around another."""

    def __init__(self, handler: Callable[[Any], Any]) -> None:
        self.handler = handler
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, state: Any) -> Any:
        with self._lock:
            self.calls += 1
        return self.handler(state)


def sources(graph: CompiledGraph, thread_id: str) -> list[str]:
    """List what made each checkpoint of a thread, oldest first."""
    history = graph.get_state_history(thread_id)
    return [snapshot.metadata["source"] for snapshot in reversed(history)]


def compiled(builder: Any, checkpointer: Any) -> CompiledGraph:
    """The graph, with its threads in `checkpointer`."""
    return builder.compile().with_checkpointer(checkpointer)


def line(checkpointer: Any) -> CompiledGraph:
    """A completed thread "t" over a, b, c; each adds 1."""
    graph = compiled(add_line(new_builder(), "a", "b", "c"), checkpointer)
    graph.run_with_thread("t", {})
    return graph


def head(graph: CompiledGraph) -> Any:
    """The newest snapshot of thread "t"."""
    return graph.get_state("t")


def asking(handler: Any, checkpointer: Any) -> CompiledGraph:
    """A graph of one node that asks, leading to `after`."""
    builder = add_fan(new_builder(), {"ask": handler}).add_node("after", note("after"))
    return compiled(builder.add_edge("ask", "after"), checkpointer)


def answered(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
    """Say what the answer was."""
    return {"mark": repr(ctx.resume), "log": [f"{ctx.node_id}={ctx.resume}"]}
