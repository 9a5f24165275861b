"""How deep graphs may run graphs, and what they are told of where they stand."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import MemoryCheckpointer, RecursionPolicy, shared_subgraph
from stateknot.errors import NodeFailedError, SubAgentDepthError
from stateknot.runtime.config import RecursionFrame
from tests.runtime.families import child_states, line, parent_of
from tests.runtime.graphs import Tally, note


def leaf() -> Any:
    return line("tests.leaf", {"leaf": note("leaf")})


def test_depth_of_a_parent_does_not_bind_its_child(checkpointer: Any) -> None:
    """Scenario 149: the parent's policy admits one level, the child's the default."""
    graph = parent_of(leaf(), checkpointer)
    graph = graph.with_recursion_policy(RecursionPolicy(max_depth=1))
    assert graph.run_with_thread("t", {}).state.log == ["before", "leaf", "after"]


def test_child_deeper_than_its_own_policy_fails(checkpointer: Any) -> None:
    """Scenario 149."""
    child = leaf().with_recursion_policy(RecursionPolicy(max_depth=1))
    with pytest.raises(NodeFailedError) as failed:
        parent_of(child, checkpointer).run_with_thread("t", {})
    cause = failed.value.__cause__
    assert isinstance(cause, SubAgentDepthError)
    assert (cause.max_depth, failed.value.code) == (1, "runtime.graph.depth_exceeded")


@pytest.mark.parametrize(("most", "is_refused"), [(0, True), (1, False)])
def test_depth_of_a_top_level_run(most: int, is_refused: bool) -> None:
    """Scenario 66: a run itself is one level."""
    graph = leaf().with_recursion_policy(RecursionPolicy(max_depth=most))
    if is_refused:
        with pytest.raises(SubAgentDepthError):
            graph.run({})
    else:
        assert graph.run({}).state.log == ["leaf"]


def test_graph_that_calls_itself_stops_at_its_depth(checkpointer: Any) -> None:
    """No stack overflow, and every level is told who is above it."""
    graphs: list[Any] = []
    depths: list[int] = []

    def dive(_state: Tally, ctx: Any) -> dict[str, Any]:
        depths.append(len(ctx.recursion_frames))
        graphs[0].run({})
        return {}

    policy = RecursionPolicy(max_depth=4)
    graphs.append(line("tests.dive", {"dive": dive}).with_recursion_policy(policy))
    with pytest.raises(NodeFailedError):
        graphs[0].with_checkpointer(checkpointer).run_with_thread("t", {})
    assert depths == [0, 1, 2, 3]


def test_frames_stand_in_the_records_of_a_child(checkpointer: Any) -> None:
    """Scenario 88, one level down: the root's frame and its own."""
    child = leaf()
    graph = parent_of(child, checkpointer)
    done = graph.run_with_thread("t", {})
    last = child_states(child, graph, "t")[-1].metadata["recursion"]
    assert [frame["depth"] for frame in last] == [0, 1]
    assert [frame["graph_id"] for frame in last] == ["tests.parent", "tests.leaf"]
    assert [frame["node"] for frame in last] == [None, "child"]
    assert last[1]["parent_run_id"] == last[0]["run_id"] == done.run_id


def test_visits_are_bounded_by_the_childs_policy(checkpointer: Any) -> None:
    """Section 6: a policy is not handed on."""
    loop = line("tests.loop", {"n": note("n", 1)})
    tight = loop.with_recursion_policy(RecursionPolicy(max_visits_per_node=1))
    graph = line(
        "tests.parent", {"a": shared_subgraph(tight), "b": shared_subgraph(tight)}
    )
    graph = graph.with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.total == 2


def test_frames_that_are_given_stand_above_the_run() -> None:
    """`with_recursion_frames` and `with_recursion_node`: a host of its own kind."""
    above = RecursionFrame(graph_id="host", run_id="host-run", node=None)
    seen: list[Any] = []

    def look(_state: Tally, ctx: Any) -> None:
        seen.append(ctx)

    graph = line("tests.guest", {"look": look}).with_recursion_frames([above])
    graph = graph.with_recursion_node("room")
    store = MemoryCheckpointer()
    done = graph.with_checkpointer(store).run_with_thread("t", {})
    (ctx,) = seen
    assert ctx.recursion_frames == (above,)
    assert (done.parent_run_id, done.root_run_id) == ("host-run", "host-run")
    last = graph.with_checkpointer(store).get_state("t").metadata["recursion"]
    assert [frame["node"] for frame in last] == [None, "room"]
    assert [frame["depth"] for frame in last] == [0, 1]


def test_frames_that_are_given_count_against_the_depth() -> None:
    above = RecursionFrame(graph_id="host", run_id="host-run")
    graph = leaf().with_recursion_policy(RecursionPolicy(max_depth=1))
    assert graph.run({}).state.log == ["leaf"]
    with pytest.raises(SubAgentDepthError):
        graph.with_recursion_frames([above]).run({})
