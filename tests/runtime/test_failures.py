"""What a failed superstep keeps, what it leaves to do, and how it goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, RunStatus
from stateknot.errors import (
    MissingNodeError,
    NodeFailedError,
    ReducerError,
    RoutingError,
)
from tests.runtime.graphs import (
    PATIENCE,
    Asker,
    Counted,
    Flaky,
    Tally,
    add_fan,
    new_builder,
    note,
    sources,
)

if TYPE_CHECKING:
    from stateknot.runtime.events import CollectingSink


def kept(builder: Any, checkpointer: Any) -> Any:
    """Compile a graph that runs side by side and keeps its threads."""
    return builder.with_parallel().compile().with_checkpointer(checkpointer)


def fail(graph: Any) -> NodeFailedError:
    """Run thread "t", which must fail; give the error."""
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    return failed.value


def test_node_sees_the_state_edited_after_its_failure(checkpointer: Any) -> None:
    """Scenario 47."""
    work = Flaky("work")
    builder = add_fan(new_builder(), {"work": work})
    graph = builder.compile().with_checkpointer(checkpointer)
    fail(graph)
    graph.update_state("t", {"mark": "edited"})
    assert graph.retry("t").state.mark == "edited"
    assert [state.mark for state in work.seen] == ["", "edited"]


def test_finished_branch_stands_when_a_later_one_fails(checkpointer: Any) -> None:
    """Scenario 48: its update is committed, and it does not run again."""
    ok = Counted(note("ok", 1))
    builder = add_fan(new_builder(), {"a": ok, "b": Flaky("flaky")})
    graph = kept(builder, checkpointer)
    assert fail(graph).node_id == "b"
    head = graph.get_state("t")
    assert (head.values.log, head.next_nodes) == (["ok"], ["b"])
    assert graph.retry("t").state.log == ["ok", "flaky"]
    assert ok.calls == 1


def three_branches(last: Any) -> Any:
    """Branches a (leading to j), b (fails once) and c, in this order."""
    nodes = {"a": note("a"), "b": Flaky("b"), "c": last}
    return add_fan(new_builder(), nodes).add_node("j", note("j")).add_edge("a", "j")


def test_result_behind_a_failure_is_kept_for_the_retry(checkpointer: Any) -> None:
    """Replaces scenario 49 (decision 2): c is not folded yet, and not run again."""
    last = Counted(note("c"))
    graph = kept(three_branches(last), checkpointer)
    fail(graph)
    head = graph.get_state("t")
    assert (head.values.log, head.next_nodes) == (["a"], ["j", "b", "c"])
    assert graph.retry("t").state.log == ["a", "j", "b", "c"]
    assert last.calls == 1


def test_sequential_step_stops_at_its_failure(checkpointer: Any) -> None:
    """Scenario 49 one by one: c never started, and runs with the retry."""
    last = Counted(note("c"))
    graph = three_branches(last).compile().with_checkpointer(checkpointer)
    fail(graph)
    assert graph.get_state("t").next_nodes == ["j", "b", "c"]
    assert last.calls == 0
    assert graph.retry("t").state.log == ["a", "j", "b", "c"]


def test_failure_waits_for_a_sibling_to_settle(checkpointer: Any) -> None:
    """PF-05: the boundary comes after b, b is kept, and the join runs once."""
    failed = threading.Event()
    settled = []

    def first(_state: Tally) -> Any:
        if failed.is_set():
            return {"log": ["a"]}
        failed.set()
        raise ValueError("a fails first")

    def second(_state: Tally) -> Any:
        assert failed.wait(PATIENCE)
        settled.append("b")
        return {"log": ["b"]}

    builder = add_fan(new_builder(), {"a": first, "b": second})
    builder.add_node("j", note("j")).add_waiting_edge(["a", "b"], "j")
    graph = kept(builder, checkpointer)
    assert fail(graph).node_id == "a"
    assert settled == ["b"]
    assert graph.retry("t").state.log == ["a", "b", "j"]
    assert settled == ["b"]


def test_question_before_a_failure_decides(
    checkpointer: Any, sink: CollectingSink
) -> None:
    """Scenario 51: the run is interrupted; the failed branch runs again."""
    flaky = Flaky("b")
    builder = add_fan(new_builder(), {"a": Asker(), "b": flaky})
    graph = kept(builder, checkpointer).with_event_sink(sink)
    assert graph.run_with_thread("t", {}).status is RunStatus.INTERRUPTED
    assert "node.failed" not in sink.kinds
    assert graph.resume("t", Command(resume=5)).state.log == ["a=5", "b"]
    assert flaky.calls == 2


def test_failure_before_a_question_decides(
    checkpointer: Any, sink: CollectingSink
) -> None:
    """Scenario 51 the other way round: an error, and no event of the question."""
    asker = Asker()
    builder = add_fan(new_builder(), {"a": Flaky("a"), "b": asker})
    graph = kept(builder, checkpointer).with_event_sink(sink)
    assert fail(graph).node_id == "a"
    assert "interrupt.emitted" not in sink.kinds


def test_question_behind_a_failure_is_not_asked_again(checkpointer: Any) -> None:
    """Replaces scenario 51 (decision 3): it was recorded, and stays open."""
    asker = Asker()
    builder = add_fan(new_builder(), {"a": Flaky("a"), "b": asker})
    graph = kept(builder, checkpointer)
    fail(graph)
    (asked,) = graph.get_state("t").pending_interrupts
    paused = graph.retry("t")
    assert [question.id for question in paused.interrupts] == [asked.id]
    assert asker.calls == 1
    assert graph.resume("t", Command(resume=5)).state.log == ["a", "b=5"]


def refused_update(_state: Tally) -> Any:
    return {"total": "not a number", "log": ["never"]}


def test_refused_update_does_not_mask_a_later_failure(checkpointer: Any) -> None:
    """Replaces scenario 52 (decision 6): a boundary at the refusal, both run again."""
    flaky = Flaky("b")
    first = Counted(refused_update)
    graph = kept(add_fan(new_builder(), {"a": first, "b": flaky}), checkpointer)
    error = fail(graph)
    assert isinstance(error, ReducerError)
    head = graph.get_state("t")
    assert (head.metadata["failed_node"], head.next_nodes) == ("a", ["a", "b"])
    assert (head.values, sources(graph, "t")) == (Tally(), ["input", "failure"])
    first.handler = note("a")
    assert graph.retry("t").state.log == ["a", "b"]
    assert (first.calls, flaky.calls) == (2, 2)


def test_question_before_a_refused_update_decides(checkpointer: Any) -> None:
    """Scenario 52 behind a question: the refusal comes when its turn has come."""
    nodes = {"a": Asker(), "b": refused_update}
    graph = kept(add_fan(new_builder(), nodes), checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    with pytest.raises(ReducerError) as failed:
        graph.resume("t", Command(resume=1))
    assert failed.value.node_id == "b"
    assert graph.get_state("t").values.log == ["a=1"]


def test_wrong_route_does_not_mask_a_later_failure(checkpointer: Any) -> None:
    """Replaces scenario 53 (decisions 2, 6): the routed node is not run again."""
    first = Counted(lambda _s: Command(update={"log": ["a"]}, goto="ghost"))
    flaky = Flaky("b")
    graph = kept(add_fan(new_builder(), {"a": first, "b": flaky}), checkpointer)
    assert isinstance(fail(graph), MissingNodeError)
    head = graph.get_state("t")
    assert (head.metadata["failed_node"], head.next_nodes) == ("a", ["a", "b"])
    with pytest.raises(RoutingError):
        graph.retry("t")
    assert (first.calls, flaky.calls) == (1, 2)


def test_reducer_error_leaves_a_failure_boundary(
    checkpointer: Any, sink: CollectingSink
) -> None:
    """Scenario 54 (with decision 6): told, raised, and resumable."""
    builder = add_fan(new_builder(), {"a": refused_update})
    graph = builder.compile().with_checkpointer(checkpointer).with_event_sink(sink)
    error = fail(graph)
    assert isinstance(error.__cause__, TypeError)
    assert sink.kinds[-1] == "run.failed"
    assert graph.get_state("t").metadata["error"]["code"] == "node.reducer_failed"
    assert error.checkpoint_id == graph.get_state("t").config["checkpoint_id"]


def test_failure_without_a_checkpointer_is_told(sink: CollectingSink) -> None:
    """Scenario 55."""
    builder = add_fan(new_builder(), {"a": Flaky("a", failures=9)})
    with pytest.raises(NodeFailedError, match="a failed on call 1") as failed:
        builder.compile().with_event_sink(sink).run({})
    assert isinstance(failed.value.__cause__, ValueError)
    assert {"node.failed", "run.failed"} <= set(sink.kinds)
    assert "run.completed" not in sink.kinds
