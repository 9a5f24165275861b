"""Recorded scientific workflows run as they were drawn, over both stores.

Each task is a node that a waiting edge leads to from all its parents. Read
`tests/recorded_graphs.py` for where they come from.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import START, GraphBuilder, append
from stateknot.pictures import render_svg, sketch_definition
from tests.recorded_graphs import RecordedGraph, find_recorded_names, read_recorded
from tests.runtime.points import Crash, pointed, raising

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph


class Progress(BaseModel):
    """The tasks that are done, in the order in which they were folded."""

    done: Annotated[list[int], append] = []


def node_of(task: int) -> str:
    """The node that stands for a task."""
    return f"task{task}"


class Workflow:
    """A recorded graph as a graph of ours; `calls` are the tasks that its nodes ran."""

    def __init__(self, recorded: RecordedGraph) -> None:
        self.recorded = recorded
        self.calls: list[int] = []

    def compile(self) -> CompiledGraph:
        """The graph, with a node for each task."""
        builder = GraphBuilder(self.recorded.name, state=Progress, version="1.0.0")
        roots = []
        for task, parents in enumerate(self.recorded.parents):
            builder.add_node(node_of(task), self._handler(task, parents))
            if parents:
                builder.add_waiting_edge([node_of(p) for p in parents], node_of(task))
            else:
                roots.append(node_of(task))
        builder.add_edge(START, roots)
        return builder.compile()

    def _handler(self, task: int, parents: list[int]) -> Callable[..., Any]:
        def run(state: Progress) -> dict[str, Any]:
            missing = set(parents).difference(state.done)
            assert not missing, f"task {task} ran before its parents {missing}"
            self.calls.append(task)
            return {"done": [task]}

        return run


@pytest.fixture(params=find_recorded_names())
def workflow(request: pytest.FixtureRequest) -> Workflow:
    """Give each of the recorded graphs; fails where they cannot be read."""
    return Workflow(read_recorded(request.param))


def test_recorded_graph_runs_each_task_once(
    workflow: Workflow, checkpointer: Any
) -> None:
    """No task runs before its parents: its handler looks for them in the state."""
    graph = workflow.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    assert sorted(workflow.calls) == list(range(workflow.recorded.tasks))
    stored = graph.get_state("t")
    assert stored is not None
    assert sorted(stored.values.done) == list(range(workflow.recorded.tasks))


def test_recorded_graph_takes_a_superstep_per_level(
    workflow: Workflow, checkpointer: Any
) -> None:
    graph = workflow.compile().with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    assert done.steps == workflow.recorded.depth
    levels = [workflow.recorded.levels[task] for task in done.state.done]
    assert levels == sorted(levels)


def test_recorded_graph_runs_in_threads_alike(
    workflow: Workflow, checkpointer: Any
) -> None:
    graph = workflow.compile().with_checkpointer(checkpointer)
    alone = graph.run_with_thread("alone", {})
    beside = graph.with_parallel(max_concurrency=4).run_with_thread("beside", {})
    assert beside.state == alone.state
    assert beside.steps == alone.steps


def test_recorded_graph_killed_half_way_resumes_without_loss(
    workflow: Workflow, checkpointer: Any
) -> None:
    """Only the superstep whose boundary was not written runs again."""
    lost = workflow.recorded.depth // 2
    store = pointed(checkpointer).at("before commit", raising(Crash(), on=lost + 1))
    graph = workflow.compile().with_checkpointer(store)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    done = graph.resume("t")
    assert sorted(done.state.done) == list(range(workflow.recorded.tasks))
    levels = workflow.recorded.levels
    expected = {task: 2 if levels[task] == lost else 1 for task in done.state.done}
    assert Counter(workflow.calls) == expected


def test_recorded_graph_is_told_whole_by_its_exports(workflow: Workflow) -> None:
    graph = workflow.compile()
    told = graph.topology()
    assert len(told.nodes) == workflow.recorded.tasks
    edges = {(s, join.target) for join in told.waiting_edges for s in join.sources}
    assert edges == {(node_of(p), node_of(c)) for p, c in workflow.recorded.edges}
    for drawn in (graph.to_mermaid(), graph.to_dot()):
        assert all(node_of(task) in drawn for task in range(workflow.recorded.tasks))


def test_recorded_graph_is_drawn_whole(workflow: Workflow) -> None:
    """Each task has one box with its name in the picture, and each edge an arrow."""
    sketch = sketch_definition(workflow.compile().definition.to_dict())
    svg = render_svg(sketch, title="recorded", describe="", key="recorded")
    for task in range(workflow.recorded.tasks):
        assert svg.count(f"<title>{node_of(task)}</title>") == 1
        assert svg.count(f">{node_of(task)}</text>") == 1
    drawn = {(edge.source, edge.target) for edge in sketch.edges}
    assert drawn >= {(node_of(p), node_of(c)) for p, c in workflow.recorded.edges}
