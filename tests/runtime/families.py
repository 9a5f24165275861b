"""Parents and children from which the tests about child graphs are built.

A child is a graph over `Tally`, so that it may run on its parent's state; `stages` of a
`Story` tell from the final state who ran and in which order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel

from stateknot import START, adapter_subgraph, append, shared_subgraph
from tests.runtime.graphs import Asker, Tally, add_line, new_builder, note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stateknot import CompiledGraph


class Story(BaseModel):
    """A child's own state; it shares no field with its parent's."""

    title: str = ""
    stages: Annotated[list[str], append] = []


def line(graph_id: str, nodes: dict[str, Any], state: type[BaseModel] = Tally) -> Any:
    """A compiled graph that runs `nodes` one after the other."""
    builder = new_builder(graph_id, state)
    for name, handler in nodes.items():
        builder.add_node(name, handler)
    return builder.add_sequence(START, *nodes).compile()


def parent_of(
    child: Any,
    checkpointer: Any = None,
    *,
    before: Sequence[str] = ("before",),
    after: Sequence[str] = ("after",),
    node: str = "child",
    **options: Any,
) -> CompiledGraph:
    """A graph that runs `child` (a graph or a handler) between two logging nodes."""
    handler = child if callable(child) else shared_subgraph(child)
    builder = add_line(new_builder("tests.parent"), *before)
    builder.add_node(node, handler, **options)
    for name in after:
        builder.add_node(name, note(name, 1))
    builder.add_sequence(START, *before, node, *after)
    graph = builder.compile()
    return graph if checkpointer is None else graph.with_checkpointer(checkpointer)


def asking_child(*questions: str) -> CompiledGraph:
    """A child that logs, asks each question in a step of its own, and logs."""
    nodes: dict[str, Any] = {"c1": note("c1", 1)}
    nodes |= {name: Asker(name) for name in questions or ("ask",)}
    return line("tests.child", nodes | {"c3": note("c3", 1)})


def told_story(graph: CompiledGraph) -> Any:
    """A node that runs a child over `Story`, titled by the parent's mark."""
    return adapter_subgraph(
        graph,
        lambda state: {"title": state.mark},
        lambda state, story: {"log": [f"{story.title}:{state.total}", *story.stages]},
    )


def stage(name: str) -> Callable[[Story], dict[str, Any]]:
    """Make a handler that adds a stage to the story."""

    def handler(_state: Story) -> dict[str, Any]:
        return {"stages": [name]}

    return handler


def child_states(graph: Any, parent: Any, thread_id: str, place: int = 0) -> Any:
    """A child's own history, oldest first, found from its parent's newest record of it.

    `graph` is the child's graph; `place` counts the child runs of that boundary.
    """
    told = [
        snapshot.metadata["child_runs"]
        for snapshot in parent.get_state_history(thread_id)
        if snapshot.metadata["child_runs"]
    ]
    namespace = told[0][place]["namespace"]
    reader = graph.with_checkpointer(parent.config.checkpointer)
    history = reader.with_namespace(namespace).get_state_history(thread_id)
    return list(reversed(history))
