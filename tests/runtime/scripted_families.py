"""A family of graphs for the model of thread operations: parents and their children.

The graph of `scripted.py`, with `a`, `b` and `c` running children in the three ways in
which a node can: on the parent's state, called by hand twice, on a state of its own
with a child below. The script says for each node of each of them what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot import (
    END,
    START,
    Interrupt,
    MemoryCheckpointer,
    NodeContext,
    adapter_subgraph,
    shared_subgraph,
)
from tests.runtime.families import line
from tests.runtime.graphs import Tally, new_builder
from tests.runtime.scripted import Side, act, ended

if TYPE_CHECKING:
    from stateknot import CompiledGraph

CHILD_NODES = ("l1", "l2", "r1", "r2", "m1", "i1")
"""Of the shared child, of the one called by hand, of the adapted one and of its own."""


class FamilySide(Side):
    """A family over one store, its script, and what all its handlers did."""

    def _graph(self) -> Any:
        """`a`, `b` and `c` host children; the edges are those of the base."""
        self.by_hand = self._line("tests.model_right", "r1", "r2")
        builder = new_builder("tests.family_model")
        builder.add_node(
            "a", shared_subgraph(self._line("tests.model_left", "l1", "l2"))
        )
        builder.add_node("b", self._call_twice).add_node("c", self._adapted())
        for node in ("join", "last"):
            builder.add_node(node, self._handler(node))
        builder.add_node("worker", self._work)
        builder.add_edge(START, ["a", "b", "c"]).add_waiting_edge(["a", "b"], "join")
        builder.add_edge("c", "last").add_edge("join", "last").add_edge("last", END)
        builder = builder.with_parallel() if self.is_parallel else builder
        return builder.compile().with_checkpointer(self.dying)

    def _line(self, graph_id: str, *nodes: str) -> CompiledGraph:
        return line(graph_id, {node: self._child_handler(node) for node in nodes})

    def _adapted(self) -> Any:
        inner = shared_subgraph(self._line("tests.model_inner", "i1"))
        nodes = {"m1": self._child_handler("m1"), "m2": inner}
        return adapter_subgraph(
            line("tests.model_middle", nodes),
            lambda state: {"total": state.total, "log": []},
            lambda _state, child: {"log": child.log, "total": 1},
        )

    def _child_handler(self, node: str) -> Any:
        """Children have no node to send to or to go back to: there it just goes on."""

        def handler(state: Tally, ctx: NodeContext) -> Any:
            what = self.script.get(node, "go on")
            what = "go on" if what in ("send", "back") else what
            return self._acted(what, node, state, ctx)

        return handler

    def _acted(self, what: str, node: str, state: Tally, ctx: NodeContext) -> Any:
        result = act(what, node, state, ctx)
        self._note(ctx, ended(what, result))
        if what == "fail":
            raise ValueError(f"{node} was told to fail")
        return result

    def _call_twice(self, state: Tally, ctx: NodeContext) -> Any:
        """Between two calls of the same graph the node does what its script says."""
        first = self._called({"mark": "first"}, ctx)
        what = self.script.get("b", "go on")
        result = act(what, "b", state, ctx)
        if what == "fail":
            self._note(ctx, "failed")
            raise ValueError("b was told to fail")
        if isinstance(result, (Interrupt, list)):
            self._note(ctx, "asked")
            return result
        second = self._called({"mark": "second", "log": first.log}, ctx)
        self._note(ctx, ended(what, result))
        if isinstance(result, dict) and "log" in result:
            return {**result, "log": [*result["log"], *second.log]}
        return result

    def _called(self, state: Any, ctx: NodeContext) -> Tally:
        """A call that ends the handler counts as a try of it that asked."""
        try:
            return self.by_hand.run(state).state
        except BaseException as stop:
            self._note(ctx, "failed" if isinstance(stop, Exception) else "asked")
            raise


def memory_family(*, is_parallel: bool) -> Side:
    """A family over the memory store."""
    return FamilySide(MemoryCheckpointer(), is_parallel=is_parallel)


def database_family(*, is_parallel: bool) -> Side:
    """A family over the Django store."""
    from stateknot.storage import DjangoCheckpointer

    return FamilySide(DjangoCheckpointer(), is_parallel=is_parallel)
