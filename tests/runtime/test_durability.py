"""When boundaries are written: `sync` and `exit`; `test_async_writes.py` has the third.

Both stores write for real; `points.py` makes them fail or wait where a test says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, Command, ResumeTarget, RetryableError, RetryPolicy
from stateknot.errors import NodeFailedError, RecursionLimitError
from stateknot.runtime.budget import Quantum
from tests.runtime.drives import admit, drive, tried
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    add_line,
    new_builder,
    note,
    sources,
)
from tests.runtime.points import pointed, raising

if TYPE_CHECKING:
    from stateknot import CompiledGraph
    from stateknot.runtime.events import CollectingSink
    from tests.runtime.clock import FakeClock


def line(checkpointer: Any, mode: str, *names: str) -> CompiledGraph:
    """A graph of logging nodes in a row."""
    graph = add_line(new_builder(), *(names or ("a", "b"))).compile()
    return graph.with_checkpointer(checkpointer).with_durability(mode)


def chained(graph: CompiledGraph) -> bool:
    """Whether each record of thread "t" names the one before it as its parent."""
    history = graph.get_state_history("t")
    ids = [snapshot.config["checkpoint_id"] for snapshot in history]
    parents = [s.parent_config and s.parent_config["checkpoint_id"] for s in history]
    return parents == [*ids[1:], None]


def test_sync_run_writes_each_boundary(checkpointer: Any) -> None:
    """Scenario 72 with decision 8: an input record comes before the two."""
    graph = line(checkpointer, "sync")
    graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input", "loop", "loop"]
    assert chained(graph)


def test_exit_run_writes_where_it_rests(checkpointer: Any) -> None:
    """Scenario 73 with decision 8: one record behind that of the admission."""
    graph = line(checkpointer, "exit")
    done = graph.run_with_thread("t", {})
    head = graph.get_state("t")
    assert sources(graph, "t") == ["input", "loop"]
    assert (head.next_nodes, head.values.log) == ([], ["a", "b"])
    assert head.config["checkpoint_id"] == done.checkpoint_id
    assert (head.metadata["step"], chained(graph)) == (2, True)


def test_second_exit_run_stands_on_the_first(checkpointer: Any) -> None:
    """Scenario 73 twice: sequence and parents go on, though records were left out."""
    graph = line(checkpointer, "exit", "a", "b", "c")
    graph.run_with_thread("t", {})
    graph.run_with_thread("t", {"mark": "second"})
    assert sources(graph, "t") == ["input", "loop"] * 2
    assert chained(graph)
    assert graph.get_state("t").values.mark == "second"


def failing_second(checkpointer: Any, flaky: Any) -> CompiledGraph:
    """Node a, then one that may fail, written at exit."""
    builder = add_line(new_builder(), "a").add_node("b", flaky).add_edge("a", "b")
    graph = builder.compile().with_checkpointer(checkpointer)
    return graph.with_durability("exit")


def test_exit_run_writes_its_failure(checkpointer: Any) -> None:
    """Scenario 74: one failure record, with what was done before it."""
    graph = failing_second(checkpointer, Flaky("b"))
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    head = graph.get_state("t")
    assert (sources(graph, "t"), head.next_nodes) == (["input", "failure"], ["b"])
    assert head.config["checkpoint_id"] == failed.value.checkpoint_id
    assert graph.retry("t").state.log == ["a", "b"]
    assert chained(graph)


def test_exit_run_that_failed_is_retried_with_all_attempts(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Scenario 45 at exit: attempts of the swallowed boundaries are not its own."""
    flaky = Flaky("b", failures=3, error=RetryableError)
    graph = failing_second(checkpointer, flaky)._with(clock=clock)
    graph = graph.with_node_retry(RetryPolicy(max_attempts=2))
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["a", "b"]
    failed = [("b", 1, "failed"), ("b", 2, "failed")]
    again = [("b", 1, "failed"), ("b", 2, "succeeded")]
    assert tried(checkpointer) == [("a", 1, "succeeded"), *failed, *again]


def test_exit_run_keeps_what_it_did_when_its_limit_stops_it(checkpointer: Any) -> None:
    """Replaces scenario 74 (decision 6): limits keep the last boundary, at exit too."""
    graph = line(checkpointer, "exit", "a", "b", "c")
    graph.run_with_thread("u", {})
    builder = add_line(new_builder(), "a", "b", "c").with_recursion_limit(2)
    graph = builder.compile().with_checkpointer(checkpointer).with_durability("exit")
    with pytest.raises(RecursionLimitError):
        graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input", "loop"]
    assert graph.resume("t", step_limit=3).state.log == ["a", "b", "c"]


def asking_second(checkpointer: Any, mode: str = "exit") -> CompiledGraph:
    """Node a, a question, node c."""
    builder = add_line(new_builder(), "a").add_node("ask", Asker())
    builder.add_node("c", note("c")).add_sequence("a", "ask", "c")
    graph = builder.compile().with_checkpointer(checkpointer)
    return graph.with_durability(mode)


def test_exit_run_pauses_for_its_question(checkpointer: Any) -> None:
    """Scenario 75."""
    graph = asking_second(checkpointer)
    paused = graph.run_with_thread("t", {})
    assert paused.is_interrupted
    assert sources(graph, "t") == ["input", "interrupt"]
    assert [q.id for q in graph.get_state("t").pending_interrupts] == [
        paused.interrupts[0].id
    ]
    assert graph.resume("t", Command(resume=3)).state.log == ["a", "ask=3", "c"]
    assert (sources(graph, "t"), chained(graph)) == (
        ["input", "interrupt", "loop"],
        True,
    )


@pytest.mark.parametrize("mode", ["sync", "exit"])
def test_fork_takes_its_question_along(checkpointer: Any, mode: str) -> None:
    """Scenario 75 with decision 10 (D2): a fork shows it, and so does its own fork."""
    graph = asking_second(checkpointer, mode)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    graph.fork_state("u", "v")
    for thread_id in ("u", "v"):
        assert len(graph.get_state(thread_id).pending_interrupts) == 1
        done = graph.resume(thread_id, Command(resume=3))
        assert done.state.log == ["a", "ask=3", "c"]


def test_branch_of_an_exit_run_reuses_kept_results(checkpointer: Any) -> None:
    """Decision 2 at exit: the kept result belongs to the record that was written."""
    quick = Counted(note("quick"))
    builder = add_line(new_builder(), "a").add_node("b", Flaky("b"))
    builder.add_node("c", quick).add_edge("a", ["b", "c"]).with_parallel()
    graph = builder.compile().with_checkpointer(checkpointer).with_durability("exit")
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    graph.retry("t")
    boundary = failed.value.checkpoint_id
    branch = graph.resume_from("t", ResumeTarget.checkpoint(boundary))
    assert (branch.state.log, quick.calls) == (["a", "b", "quick"], 1)


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_time_of_every_boundary_counts(
    checkpointer: Any, clock: FakeClock, mode: str
) -> None:
    """Decision 6: written or not, each superstep adds what it took."""
    builder = new_builder().add_edge(START, "a").add_edge("a", "b")
    for name in ("a", "b"):
        builder.add_node(name, lambda _state: clock.sleep(2))
    graph = builder.compile().with_checkpointer(checkpointer)._with(clock=clock)
    graph.with_durability(mode).run_with_thread("t", {})
    assert checkpointer.find_thread_run("t").active_seconds == pytest.approx(4)


@pytest.mark.usefixtures("empty_registry")
def test_exit_run_on_a_worker_writes_where_it_yields(checkpointer: Any) -> None:
    """Decision 8: after two supersteps, and at the end."""
    graph = line(checkpointer, "exit", "a", "b", "c")
    admit(graph)
    assert drive(checkpointer, Quantum(supersteps=2)).wants_more
    assert graph.get_state("t").next_nodes == ["c"]
    drive(checkpointer)
    assert sources(graph, "t") == ["input", "loop", "loop"]
    assert graph.get_state("t").values.log == ["a", "b", "c"]
    assert chained(graph)


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
@pytest.mark.parametrize("point", ["before commit", "after commit"])
def test_boundary_that_cannot_be_written_ends_the_run(
    checkpointer: Any, mode: str, point: str
) -> None:
    """Replaces scenario 84 (decision 8): record and results are one transaction."""
    store = pointed(checkpointer).at(point, raising(OSError("disk full")))
    graph = line(store, mode)
    with pytest.raises(OSError, match="disk full"):
        graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input"]
    assert tried(store) == []
    assert graph.resume("t").state.log == ["a", "b"]


def saved_events(store: Any, thread_id: str) -> list[Any]:
    """The checkpoints that a run's journal says were saved."""
    rows = store.list_journal(store.find_thread_run(thread_id).id)
    events = [event for row in rows for event in row.events]
    return [e.data["checkpoint"] for e in events if e.kind == "checkpoint.saved"]


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_boundary_is_complete_in_every_mode(
    checkpointer: Any, sink: CollectingSink, mode: str
) -> None:
    """Replaces scenario 85 (decision 8, D9): attempts stand with the record.

    What was saved is told live and journalled, and nothing else is.
    """
    graph = line(checkpointer, mode).with_event_sink(sink)
    graph.run_with_thread("t", {})
    assert tried(checkpointer) == [("a", 1, "succeeded"), ("b", 1, "succeeded")]
    history = reversed(graph.get_state_history("t")[:-1])
    written = [snapshot.config["checkpoint_id"] for snapshot in history]
    live = [e.data["checkpoint"] for e in sink.events if e.kind == "checkpoint.saved"]
    assert saved_events(checkpointer, "t") == live == written


def test_boundary_that_is_not_written_is_not_told(
    checkpointer: Any, sink: CollectingSink
) -> None:
    """Scenario 84: no saved event, and no step that would have completed."""
    store = pointed(checkpointer).at("after commit", raising(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        line(store, "sync").with_event_sink(sink).run_with_thread("t", {})
    assert not {"checkpoint.saved", "step.completed"} & set(sink.kinds)
