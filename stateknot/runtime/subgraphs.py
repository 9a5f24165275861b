"""Nodes that run a graph: `shared_subgraph` and `adapter_subgraph`.

The handler that they give is added like any other. What the child changed, and nothing
else, becomes the node's update: a field it did not write stays the parent's, and an
accumulating field gets the items that the child added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import RunError
from stateknot.kernel.commands import Overwrite
from stateknot.runtime.children import current_children

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from stateknot.runtime.children import Children
    from stateknot.runtime.context import NodeContext
    from stateknot.runtime.graph import CompiledGraph


class SubgraphHandler:
    """A handler that runs `graph` as a child of its node."""

    kind = "subgraph"

    def __init__(
        self,
        graph: CompiledGraph,
        to_child: Callable[[Any], Any] | None,
        from_child: Callable[[Any, Any], Any] | None,
        memory: str,
    ) -> None:
        if memory not in ("fresh", "carry"):
            raise ValueError(f"memory is {memory!r}; use 'fresh' or 'carry'")
        self.graph, self.memory = graph, memory
        self.to_child, self.from_child = to_child, from_child
        self.__name__ = graph.graph_id

    def hosted(self) -> CompiledGraph:
        """The graph that the node runs."""
        return self.graph

    def __call__(self, state: BaseModel, _ctx: NodeContext) -> Any:
        """Run the child to its end and give what it changed as an update."""
        children = required_children()
        given = self.to_child(state) if self.to_child is not None else state
        execution = children.call(
            self.graph,
            given,
            segment=children.segment(),
            carry=self.memory == "carry",
        )
        if self.from_child is not None:
            return self.from_child(state, execution.state)
        began = children.given_to(self.graph, execution)
        return changes_between(began, execution.state, self.graph)


def required_children() -> Children:
    """The calls of the running activation. Raises RunError outside a run."""
    children = current_children.get()
    if children is None:
        raise RunError(
            "a subgraph node was called outside a run; run the graph that holds it"
        )
    return children


def changes_between(
    before: BaseModel, after: BaseModel, graph: CompiledGraph
) -> dict[str, Any]:
    """The update that turns `before` into `after`, field by field.

    Of an accumulating field only the items that were added; any other change of a
    reduced field replaces it.
    """
    update: dict[str, Any] = {}
    reducers = graph.blueprint.fold.reducers
    for name in type(before).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        reducer = reducers.get(name)
        if reducer is None or reducer.identity in ("minimum", "maximum", "last_value"):
            update[name] = new
        elif reducer.accumulates and isinstance(old, list) and new[: len(old)] == old:
            update[name] = new[len(old) :]
        elif reducer.accumulates and isinstance(old, (set, frozenset)) and old <= new:
            update[name] = new - old
        elif reducer.identity == "add" and isinstance(new, (int, float)):
            update[name] = new - (old or 0)
        else:
            update[name] = Overwrite(new)
    return update


def shared_subgraph(graph: CompiledGraph, *, memory: str = "fresh") -> SubgraphHandler:
    """A node that runs `graph` on the parent's own state.

    Both must have the same state model. A child starts fresh at each call;
    `memory="carry"` keeps its last state.
    """
    return SubgraphHandler(graph, None, None, memory)


def adapter_subgraph(
    graph: CompiledGraph,
    to_child: Callable[[Any], Any],
    from_child: Callable[[Any, Any], Any],
    *,
    memory: str = "fresh",
) -> SubgraphHandler:
    """A node that runs `graph` on a state of its own.

    `to_child(parent_state)` gives the child's first state (a model or a mapping),
    `from_child(parent_state, child_state)` the parent's update. With `memory="carry"`
    only the fields that `to_child` sets are new; the others are those of the last call.
    """
    return SubgraphHandler(graph, to_child, from_child, memory)
