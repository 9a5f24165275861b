"""Child graphs that fail: who tells it, what runs again, what a fork takes along."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import RetryPolicy, RunStatus, shared_subgraph
from stateknot.errors import NodeFailedError, RecursionLimitError
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import Counted, Flaky, Tally, note
from tests.runtime.points import Crash, pointed, raising


def failing(**options: Any) -> tuple[Counted, Flaky, Any]:
    """A child of two nodes whose second fails once."""
    first, second = Counted(note("c1", 1)), Flaky("c2", **options)
    return first, second, line("tests.child", {"c1": first, "c2": second})


def fail(call: Any, *arguments: Any, **options: Any) -> NodeFailedError:
    with pytest.raises(NodeFailedError) as failed:
        call(*arguments, **options)
    return failed.value


def test_failure_of_a_child_is_that_of_its_node(checkpointer: Any) -> None:
    """Section 6: the parent's failure boundary names the hosting node."""
    _, _, child = failing()
    graph = parent_of(child, checkpointer)
    error = fail(graph.run_with_thread, "t", {})
    assert error.node_id == "child"
    assert isinstance(error.__cause__, NodeFailedError)
    assert error.__cause__.node_id == "c2"
    assert isinstance(error.__cause__.__cause__, ValueError)
    assert "c2 failed on call 1" in str(error)
    snapshot = graph.get_state("t")
    assert (snapshot.metadata["failed_node"], snapshot.next_nodes) == (
        "child",
        ["child"],
    )


def test_failed_child_goes_on_from_its_own_boundary(checkpointer: Any) -> None:
    """Replaces scenario 145 (decision 10, D4): its first node does not run twice."""
    first, second, child = failing()
    graph = parent_of(child, checkpointer)
    fail(graph.run_with_thread, "t", {})
    done = graph.retry("t")
    assert done.state == Tally(total=4, log=["before", "c1", "c2", "after"])
    assert (first.calls, second.calls) == (1, 2)
    assert len(checkpointer.list_children(done.run_id)) == 1


def test_failed_child_has_a_status_and_a_lineage_of_its_own(checkpointer: Any) -> None:
    """Decision 10 (D16)."""
    _, _, child = failing()
    graph = parent_of(child, checkpointer)
    parent_id = fail(graph.run_with_thread, "t", {}).run_id
    (run,) = checkpointer.list_children(parent_id)
    assert (run.status, run.root_run_id) == (RunStatus.FAILED, parent_id)
    assert run.error["node"] == "c2"


def test_retry_of_the_hosting_node_goes_on_with_the_child(
    checkpointer: Any, clock: Any
) -> None:
    """A retry policy of the parent's node repeats the call, not the child's work."""
    first, second, child = failing()
    policy = RetryPolicy(retry_on=NodeFailedError)
    graph = parent_of(child, checkpointer, retry=policy)._with(clock=clock)
    assert graph.run_with_thread("t", {}).state.log[1:3] == ["c1", "c2"]
    assert (first.calls, second.calls, len(clock.sleeps)) == (1, 2, 1)


def test_fault_of_the_world_in_a_child_is_one_for_its_parent(
    checkpointer: Any, clock: Any
) -> None:
    """Decision 9: a connection error is retried, whichever level has the policy."""
    _, second, child = failing(error=ConnectionError)
    graph = parent_of(child, checkpointer, retry=RetryPolicy())._with(clock=clock)
    assert graph.run_with_thread("t", {}).status is RunStatus.COMPLETED
    assert second.calls == 2


def test_fault_of_the_code_in_a_child_is_not_retried(
    checkpointer: Any, clock: Any
) -> None:
    """Decision 9, from one level up."""
    _, second, child = failing()
    graph = parent_of(child, checkpointer, retry=RetryPolicy())._with(clock=clock)
    fail(graph.run_with_thread, "t", {})
    assert second.calls == 1


def test_retries_of_a_child_are_its_own(checkpointer: Any, clock: Any) -> None:
    """Section 6: nothing of the retry policy is handed on, in either direction."""
    first, second, child = failing(error=ConnectionError)
    child = child.with_node_retry(RetryPolicy())
    graph = parent_of(child, checkpointer)._with(clock=clock)
    assert graph.run_with_thread("t", {}).state.total == 4
    assert (first.calls, second.calls) == (1, 2)


def test_failure_three_levels_down_goes_on_where_it_was(checkpointer: Any) -> None:
    first, second, child = failing()
    outer = Counted(note("m"))
    middle = line("tests.middle", {"m": outer, "in": shared_subgraph(child)})
    graph = parent_of(middle, checkpointer)
    error = fail(graph.run_with_thread, "t", {})
    assert error.__cause__.__cause__.node_id == "c2"
    assert graph.retry("t").state.log == ["before", "m", "c1", "c2", "after"]
    assert (outer.calls, first.calls, second.calls) == (1, 1, 2)


def test_fork_of_a_failed_thread_goes_on_with_the_child(checkpointer: Any) -> None:
    """Decision 10 (D2)."""
    first, second, child = failing()
    graph = parent_of(child, checkpointer)
    fail(graph.run_with_thread, "t", {})
    graph.fork_state("t", "fork")
    assert graph.retry("fork").state.log == ["before", "c1", "c2", "after"]
    assert graph.retry("t").state.log == ["before", "c1", "c2", "after"]
    assert (first.calls, second.calls) == (1, 3)


def test_child_at_its_limit_fails_the_node(checkpointer: Any) -> None:
    """Section 6: limits are the child's own."""
    nodes = {"c1": note("c1"), "c2": note("c2")}
    child = line("tests.child", nodes)
    from dataclasses import replace

    blueprint = replace(child.blueprint, recursion_limit=1)
    short = type(child)(blueprint, child.config)
    error = fail(parent_of(short, checkpointer).run_with_thread, "t", {})
    assert isinstance(error.__cause__, RecursionLimitError)
    assert error.code == "runtime.graph.superstep_limit_reached"


def test_hosting_node_marked_as_done_leaves_the_child_behind(
    checkpointer: Any,
) -> None:
    """Decision 5: an operator writes the child's result by hand."""
    _, second, child = failing()
    graph = parent_of(child, checkpointer)
    fail(graph.run_with_thread, "t", {})
    graph.update_state("t", {"log": ["by hand"]}, as_node="child")
    assert graph.resume("t").state.log == ["before", "by hand", "after"]
    assert second.calls == 1


def test_crash_behind_a_child_does_not_run_it_again(checkpointer: Any) -> None:
    """Decision 10: the child is complete, the parent's boundary was lost."""
    first = Counted(note("c1", 1))
    store = pointed(checkpointer)
    graph = parent_of(line("tests.child", {"c1": first}), store)
    # Commits: `before`, the child's `c1`, and then the parent's `child`.
    store.at("before commit", raising(Crash(), on=3))
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    store.clear()
    done = graph.resume("t")
    assert done.state.log == ["before", "c1", "after"]
    assert (first.calls, len(done.child_runs)) == (1, 1)
