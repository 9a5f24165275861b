"""The superstep limit: where it stops a run, and how the run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import END, START, Command
from stateknot.errors import NodeFailedError, RecursionLimitError
from tests.runtime.graphs import (
    Asker,
    Flaky,
    add_fan,
    add_line,
    new_builder,
    note,
    sources,
)


def loop(*names: str) -> Any:
    """Nodes that lead back to themselves until `total` is 100."""
    builder = new_builder()
    for name in names:
        builder.add_node(name, note(name, 1)).add_edge(START, name)
        builder.add_conditional_edges(
            name, lambda s: "again" if s.total < 100 else END, {"again": name}
        )
    return builder


def stop(call: Any, *arguments: Any, **options: Any) -> RecursionLimitError:
    """Make a call that must end at the limit; give the error."""
    with pytest.raises(RecursionLimitError) as stopped:
        call(*arguments, **options)
    return stopped.value


@pytest.mark.parametrize("is_parallel", [False, True])
def test_loop_stops_at_its_limit(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 60: sequential and side by side."""
    builder = loop("a", "b").with_recursion_limit(3)
    builder = builder.with_parallel() if is_parallel else builder
    graph = builder.compile().with_checkpointer(checkpointer)
    error = stop(graph.run_with_thread, "t", {})
    assert (error.limit, error.code) == (3, "runtime.graph.superstep_limit_reached")
    assert graph.get_state("t").values.log == ["a", "b"] * 3


def test_graph_that_needs_its_whole_limit_completes() -> None:
    """Scenario 61: two nodes, limit 2."""
    builder = add_line(new_builder(), "a", "b").with_recursion_limit(2)
    assert builder.compile().run({}).visited == ["a", "b"]


@pytest.mark.parametrize("limit", [1, 0])
def test_limit_is_checked_before_the_step(limit: int, checkpointer: Any) -> None:
    """Scenario 61: limits 1 and 0 stop before the step past them."""
    builder = add_line(new_builder(), "a", "b").with_recursion_limit(limit)
    graph = builder.compile().with_checkpointer(checkpointer)
    assert stop(graph.run_with_thread, "t", {}).limit == limit
    assert graph.get_state("t").values.log == ["a"][:limit]


def test_limit_keeps_the_last_boundary(checkpointer: Any) -> None:
    """Decision 6: no checkpoint is written, and a plain resume stops again."""
    graph = loop("a").with_recursion_limit(2).compile()
    graph = graph.with_checkpointer(checkpointer)
    stop(graph.run_with_thread, "t", {})
    stop(graph.resume, "t")
    assert sources(graph, "t") == ["input", "loop", "loop"]


def test_raised_limit_lets_the_run_go_on(checkpointer: Any) -> None:
    """Decision 6: counting goes on, and nothing is run again."""
    graph = loop("a").with_recursion_limit(2).compile()
    graph = graph.with_checkpointer(checkpointer)
    stop(graph.run_with_thread, "t", {})
    assert stop(graph.resume, "t", step_limit=5).limit == 5
    assert graph.get_state("t").values.log == ["a"] * 5


def test_raised_limit_is_kept_with_the_run(checkpointer: Any) -> None:
    """Decision 6: the next plain resume has it too."""
    graph = loop("a").with_recursion_limit(2).compile()
    graph = graph.with_checkpointer(checkpointer)
    stop(graph.run_with_thread, "t", {})
    stop(graph.retry, "t", step_limit=4)
    assert stop(graph.retry, "t").limit == 4


def test_failure_boundaries_do_not_count(checkpointer: Any) -> None:
    """Decision 6: three failures, and the limit of two is still enough for two."""
    builder = add_fan(new_builder(), {"a": Flaky("a", 3)}).add_node("b", note("b"))
    builder.add_edge("a", "b").with_recursion_limit(2)
    graph = builder.compile().with_checkpointer(checkpointer)
    for attempt in (graph.run_with_thread, graph.resume, graph.resume):
        arguments = ("t", {}) if attempt == graph.run_with_thread else ("t",)
        with pytest.raises(NodeFailedError):
            attempt(*arguments)
    assert graph.retry("t").state.log == ["a", "b"]


def test_step_numbers_rise_over_failures(checkpointer: Any) -> None:
    """Decision 6 (D6): a failure boundary takes a number, and none comes twice."""
    builder = add_fan(new_builder(), {"a": Flaky("a")}).add_node("b", note("b"))
    graph = builder.add_edge("a", "b").compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.retry("t")
    steps = [snapshot.metadata["step"] for snapshot in graph.get_state_history("t")]
    assert steps == [3, 2, 1, 0]


def test_resume_does_not_start_counting_anew(checkpointer: Any) -> None:
    """Decision 6 (D6): a pause does not evade the limit."""
    builder = add_line(new_builder(), "a").add_node("ask", Asker())
    builder.add_node("b", note("b")).add_sequence("a", "ask", "b")
    graph = builder.with_recursion_limit(2).compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert stop(graph.resume, "t", Command(resume=7)).limit == 2
    assert graph.get_state("t").next_nodes == ["b"]
