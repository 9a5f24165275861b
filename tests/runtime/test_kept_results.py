"""Finished work that waits for its fold: stored early, reused, tied to its branch."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, GraphInput, ResumeTarget
from stateknot.errors import NodeFailedError
from tests.runtime.graphs import (
    PATIENCE,
    Asker,
    Counted,
    Flaky,
    Tally,
    add_fan,
    new_builder,
    note,
    note_arg,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph


def wait_until(condition: Callable[[], Any]) -> bool:
    """Tell whether `condition` came true while there was patience left."""
    last = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        if time.monotonic() > last:
            return False
        pause.wait(0.01)
    return True


def kept(checkpointer: Any, **nodes: Any) -> CompiledGraph:
    graph = add_fan(new_builder(), nodes).with_parallel().compile()
    return graph.with_checkpointer(checkpointer)


def fail(graph: CompiledGraph) -> NodeFailedError:
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    return failed.value


def attempts(checkpointer: Any) -> list[tuple[str, str]]:
    """Node and status of each attempt of thread "t", by node."""
    run = checkpointer.find_thread_run("t")
    found = checkpointer.list_attempts(run.id)
    return sorted((item.node_id, str(item.status)) for item in found)


class Slow:
    """Ends once a result of the thread stands in the store; then fails once."""

    def __init__(self, checkpointer: Any, failures: int) -> None:
        self.checkpointer, self.then = checkpointer, Flaky("slow", failures)

    def __call__(self, state: Tally) -> Any:
        if self.then.calls == 0:
            run = self.checkpointer.find_thread_run("t")
            assert wait_until(lambda: self.checkpointer.list_results(run))
        return self.then(state)


def test_result_is_stored_while_its_sibling_runs(checkpointer: Any) -> None:
    """Decision 8: and folded once, by the boundary of the step."""
    quick = Counted(note("quick", 1))
    graph = kept(checkpointer, a=Slow(checkpointer, 0), b=quick)
    assert graph.run_with_thread("t", {}).state.log == ["slow", "quick"]
    assert checkpointer.list_results(checkpointer.find_thread_run("t")) == []
    assert attempts(checkpointer) == [("a", "succeeded"), ("b", "succeeded")]


def test_stored_result_is_folded_by_a_later_retry(checkpointer: Any) -> None:
    """Replaces scenario 49 (decisions 2, 8): it was written before the failure."""
    quick = Counted(note("quick", 1))
    graph = kept(checkpointer, a=Slow(checkpointer, 1), b=quick)
    assert fail(graph).node_id == "a"
    done = graph.retry("t")
    assert done.state == Tally(total=2, log=["slow", "quick"])
    assert quick.calls == 1


def test_stored_result_before_a_failure_is_folded_at_once(checkpointer: Any) -> None:
    """Scenario 48 with decision 8: what was written early is not folded twice."""
    quick = Counted(note("quick", 1))
    graph = kept(checkpointer, a=quick, b=Slow(checkpointer, 1))
    assert fail(graph).node_id == "b"
    assert graph.get_state("t").values.log == ["quick"]
    assert graph.retry("t").state == Tally(total=2, log=["quick", "slow"])


def test_failure_behind_a_question_is_an_attempt(checkpointer: Any) -> None:
    """Scenario 51 (decision 2): it does not decide, and it is not lost."""
    graph = kept(checkpointer, a=Asker(), b=Flaky("b"))
    graph.run_with_thread("t", {})
    assert attempts(checkpointer) == [("a", "interrupted"), ("b", "failed")]


def test_failure_behind_a_refused_update_is_an_attempt(checkpointer: Any) -> None:
    """Replaces scenario 52 (decision 6): neither masks the other."""
    graph = kept(checkpointer, a=lambda _s: {"total": "x"}, b=Flaky("b"))
    fail(graph)
    assert ("b", "failed") in attempts(checkpointer)


def test_question_is_answered_while_its_sibling_fails(checkpointer: Any) -> None:
    """Decision 3: the answer to b brings the failed a along."""
    graph = kept(checkpointer, a=Flaky("a"), b=Asker())
    fail(graph)
    (asked,) = graph.get_state("t").pending_interrupts
    done = graph.resume("t", Command(answers={asked.id: 4}))
    assert done.state.log == ["a", "b=4"]


def test_question_outlives_several_failures(checkpointer: Any) -> None:
    """Decision 3: it is listed at each boundary, and asked once."""
    asker = Asker()
    graph = kept(checkpointer, a=Flaky("a", 2), b=asker)
    (asked,) = (fail(graph), graph.get_state("t"))[1].pending_interrupts
    with pytest.raises(NodeFailedError):
        graph.retry("t")
    assert [q.id for q in graph.get_state("t").pending_interrupts] == [asked.id]
    assert (graph.retry("t").is_interrupted, asker.calls) == (True, 1)


def test_question_of_the_lower_index_comes_first(checkpointer: Any) -> None:
    """Decision 3: also where it was asked later, after a retry."""
    flaky, asker = Flaky("a"), Asker("a?")

    def fails_then_asks(state: Tally, ctx: Any) -> Any:
        return flaky(state) if flaky.calls == 0 else asker(state, ctx)

    graph = kept(checkpointer, a=fails_then_asks, b=Asker("b?"))
    fail(graph)
    paused = graph.retry("t")
    assert [question.payload for question in paused.interrupts] == ["a?", "b?"]
    listed = graph.get_state("t").pending_interrupts
    assert [question.payload for question in listed] == ["a?", "b?"]
    graph.resume("t", Command(resume=1))
    assert graph.resume("t", Command(resume=2)).state.log == ["a=1", "b=2"]


def test_answered_node_that_fails_keeps_its_answer(checkpointer: Any) -> None:
    """Decision 3: the answer is bound to the activation, so a retry sees it."""
    asker, flaky = Asker(), Flaky("", failures=1)

    def asks_then_fails(state: Tally, ctx: Any) -> Any:
        if ctx.has_resume:
            flaky(state)
        return asker(state, ctx)

    graph = kept(checkpointer, a=asks_then_fails)
    graph.run_with_thread("t", {})
    with pytest.raises(NodeFailedError):
        graph.resume("t", Command(resume=6))
    assert graph.retry("t").state.log == ["a=6"]


def test_branch_from_a_failure_reuses_its_results(checkpointer: Any) -> None:
    """Decision 2: a kept result names the checkpoint it belongs to, and goes along."""
    quick = Counted(note("quick"))
    graph = kept(checkpointer, a=Flaky("a"), b=quick)
    boundary = fail(graph).checkpoint_id
    graph.retry("t")
    branch = graph.resume_from("t", ResumeTarget.checkpoint(boundary))
    assert branch.state.log == ["a", "quick"]
    assert quick.calls == 1


def test_branch_from_before_a_result_runs_its_node(checkpointer: Any) -> None:
    """Decision 2: a result is not carried to a checkpoint that lies before it."""
    quick = Counted(note("quick"))
    graph = kept(checkpointer, a=Flaky("a"), b=quick)
    fail(graph)
    graph.retry("t")
    first = graph.get_state_history("t")[-1].config["checkpoint_id"]
    branch = graph.resume_from("t", ResumeTarget.checkpoint(first))
    assert (branch.state.log, quick.calls) == (["a", "quick"], 2)


def test_branch_from_a_question_asks_it_again(checkpointer: Any) -> None:
    """Decision 3: the answer came after that checkpoint, so there it is open."""
    asker = Asker()
    graph = kept(checkpointer, a=asker)
    paused = graph.run_with_thread("t", {})
    graph.resume("t", Command(resume=1))
    target = ResumeTarget.checkpoint(paused.checkpoint_id)
    assert graph.resume_from("t", target).is_interrupted
    assert graph.resume("t", Command(resume=8)).state.log == ["a=8"]


def test_question_is_closed_by_the_boundary_that_folds(checkpointer: Any) -> None:
    """Decision 3: nothing of an answered question is left for the run."""
    graph = kept(checkpointer, a=Asker())
    graph.run_with_thread("t", {})
    assert len(checkpointer.list_waits("t")) == 1
    graph.resume("t", Command(resume=1))
    assert checkpointer.list_waits("t") == []


def test_manual_write_keeps_a_kept_result(checkpointer: Any) -> None:
    """Decision 5: marking the failed node as done leaves its sibling's result."""
    quick = Counted(note("quick"))
    graph = kept(checkpointer, a=Flaky("a", 9), b=quick)
    fail(graph)
    graph.update_state("t", {"log": ["by hand"]}, as_node="a")
    assert graph.retry("t").state.log == ["by hand", "quick"]
    assert quick.calls == 1


def test_kept_result_keeps_its_own_routing(checkpointer: Any) -> None:
    """Decision 2: update and goto of a kept result come back as they were."""
    builder = add_fan(new_builder(), {"a": Flaky("a")}).add_node("worker", note_arg)
    builder.add_node("b", lambda _s: Command(update={"mark": "b"}, goto=["end_here"]))
    builder.add_node("end_here", note("end")).with_parallel()
    graph = builder.compile().with_checkpointer(checkpointer)
    inputs = [GraphInput.node("a"), GraphInput.node("b"), GraphInput.new("worker", 3)]
    with pytest.raises(NodeFailedError):
        graph.run_with_thread_inputs("t", {}, inputs)
    done = graph.retry("t")
    assert done.state == Tally(total=4, log=["a", "worker:3", "end"], mark="b")
