"""Composed graphs at run time: the recorded traces, over both stores.

Scenarios are those of spec/composition.md, section 5.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import Command, CompiledGraph, Interrupt, NodeContext, Timer
from stateknot.errors import NodeFailedError, RecursionLimitError
from stateknot.runtime.budget import Quantum
from tests.kernel.composition_samples import compose_vector
from tests.runtime.composed import (
    LIMITED,
    LOOP_3,
    VECTORS,
    Executed,
    Step,
    boundaries,
    expected_boundaries,
    expected_calls,
    last,
    looping,
    traced,
)
from tests.runtime.drives import admit, drive, tried
from tests.runtime.points import Crash, pointed, raising

pytestmark = pytest.mark.usefixtures("empty_registry")


@pytest.fixture
def log() -> Executed:
    return Executed()


@pytest.mark.parametrize(
    "name", ["counter_review_early_exit", "postgres_early_exit", "postgres_orphan"]
)
def test_accepted_loop_follows_the_recorded_trace(
    name: str, checkpointer: Any, log: Executed
) -> None:
    """Scenario 71: executions, supersteps, state and output."""
    graph, trace = traced(name, log)
    graph = graph.with_checkpointer(checkpointer)
    outcome = trace["expected"]["outcome"]
    ended = graph.run_with_thread("t", trace["inputs"]["initial_state"])
    assert graph.digest == trace["expected"]["definition_digest"]
    assert log == expected_calls(trace)
    terminal = (outcome["terminal_checkpoint_superstep"], [], outcome["state"])
    assert boundaries(graph) == [*expected_boundaries(trace), terminal]
    assert ended.output == outcome["output"]


@pytest.mark.parametrize("name", ["counter_review_exhaustion", "postgres_exhaustion"])
def test_exhausted_loop_follows_the_recorded_trace(
    name: str, checkpointer: Any, log: Executed
) -> None:
    """Scenario 72: the failure node runs and fails with its code."""
    graph, trace = traced(name, log)
    graph = graph.with_checkpointer(checkpointer)
    outcome = trace["expected"]["outcome"]
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", trace["inputs"]["initial_state"])
    assert (failed.value.node_id, failed.value.code) == (
        outcome["node_id"],
        outcome["code"],
    )
    assert log == expected_calls(trace)
    assert boundaries(graph) == expected_boundaries(trace)


def test_step_limit_follows_the_recorded_trace(
    checkpointer: Any, log: Executed
) -> None:
    """Scenario 77: no start past the limit, also when it is driven anew."""
    graph, trace = traced("postgres_step_limit", log)
    graph = graph.with_checkpointer(checkpointer)
    outcome = trace["expected"]["outcome"]
    with pytest.raises(RecursionLimitError):
        graph.run_with_thread("t", trace["inputs"]["initial_state"])
    stood = (outcome["superstep"], outcome["ready_nodes"], outcome["state"])
    assert boundaries(graph) == [*expected_boundaries(trace), stood]
    with pytest.raises(RecursionLimitError):
        graph.retry("t")
    assert log == expected_calls(trace)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_yield_at_every_quantum_runs_each_node_once(
    steps: int, checkpointer: Any, log: Executed
) -> None:
    """Scenario 74: passes of a worker that rebuild the graph change nothing."""
    graph, trace = traced("postgres_early_exit", log)
    graph = graph.with_checkpointer(checkpointer)
    admit(graph, trace["inputs"]["initial_state"])
    passes = 0
    while drive(checkpointer, Quantum(supersteps=steps)).wants_more:
        passes += 1
    assert passes == (5 - 1) // steps
    assert log == expected_calls(trace)
    assert tried(checkpointer) == [(node, 1, "succeeded") for node, _ in log]


@pytest.mark.parametrize("point", ["before commit", "after commit"])
@pytest.mark.parametrize("boundary", range(1, 6))
def test_crash_at_any_commit_changes_no_boundary(
    point: str, boundary: int, checkpointer: Any, log: Executed
) -> None:
    """Scenarios 73, 88: only the superstep that was not committed runs again."""
    store = pointed(checkpointer)
    graph, trace = traced("postgres_early_exit", log)
    graph = graph.with_checkpointer(store)
    admit(graph, trace["inputs"]["initial_state"])
    store.at(point, raising(Crash(), on=boundary))
    with pytest.raises(Crash):
        drive(store)
    store.clear()
    assert str(drive(store).status) == "completed"
    again = [step for _, step in log]
    again.remove(boundary - 1)
    assert again == [0, 1, 2, 3, 4]
    assert boundaries(graph)[:-1] == expected_boundaries(trace)


def waiting(log: Executed, result: Any) -> CompiledGraph:
    """The recorded graph whose body's only node completes into a wait."""

    class State(Step):
        x: int = 0
        answer: Any = None

    def pause(_state: State, ctx: NodeContext) -> Any:
        log.note(ctx)
        return result

    def finish(_state: State, ctx: NodeContext) -> Any:
        log.note(ctx)
        return {"answer": ctx.resume if ctx.has_resume else "none"}

    composition = compose_vector(VECTORS["wait_successors_mapped_to_parent"])
    return CompiledGraph.from_definition(
        composition, handlers={"pause": pause, "finish": finish}, state=State
    )


def test_question_of_a_body_goes_on_at_the_mapped_successor(
    checkpointer: Any, log: Executed
) -> None:
    """Scenarios 47, 80: the waiting node is not repeated; successors see the answer."""
    trace = VECTORS["trace_wait_then_resume"]["expected"]
    graph = waiting(log, Interrupt("well?")).with_checkpointer(checkpointer)
    assert graph.digest == trace["definition_digest"]
    paused = graph.run_with_thread("t", {})
    assert paused.is_interrupted
    assert graph.get_state("t").next_nodes == trace["outcome"]["retained_ready_nodes"]
    assert graph.resume("t", Command(resume=7)).state.answer == 7
    (entry,) = graph.blueprint.entry
    assert log == [(entry, 0), ("finish", 1)]


def test_timer_of_a_body_is_not_early(time: Any, log: Executed) -> None:
    """Scenario 80: an early drive does nothing, a due one runs the retained set."""
    hour = timedelta(hours=1)
    graph = waiting(log, Timer(hour)).with_checkpointer(time.store)
    admit(graph)
    drive(time.store)
    assert str(time.store.find_thread_run("t").status) == "waiting"
    assert graph.get_state("t").next_nodes == ["finish"]
    drive(time.store)
    assert len(log) == 1
    time.pass_by(hour)
    assert str(drive(time.store).status) == "completed"
    assert [step for _, step in log] == [0, 1]
    drive(time.store)
    assert len(log) == 2


def test_generated_and_local_labels_choose_alike(checkpointer: Any) -> None:
    """Scenario 63, replaced by decision 14: a handler may return either."""
    composition = compose_vector(VECTORS[LOOP_3])

    def decide(_state: Step, ctx: NodeContext) -> Command:
        return Command(route=ctx.source.route_id("accept"))

    graph = CompiledGraph.from_definition(
        composition,
        handlers={
            "work": lambda _s: {"step": "x"},
            "decide": decide,
            "finish": lambda _s: None,
            "exhausted": lambda _s: None,
        },
        state=Step,
        update=Step,
        reducer=last,
    ).with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited[-1] == "finish"


def test_step_limit_of_the_definition_is_the_runs(log: Executed) -> None:
    graph = looping(LIMITED, log=log)
    with pytest.raises(RecursionLimitError) as stopped:
        graph.run({})
    assert (stopped.value.limit, len(log)) == (2, 2)
