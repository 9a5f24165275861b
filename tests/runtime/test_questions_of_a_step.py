"""Steps in which some branches ask and others do not: who gets which answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, Command, Interrupt, NodeContext, RunStatus, Send
from stateknot.errors import ResumeError
from tests.runtime.graphs import (
    Asker,
    Counted,
    Tally,
    add_fan,
    go,
    new_builder,
    note,
)

if TYPE_CHECKING:
    from stateknot import CompiledGraph

MODES = pytest.mark.parametrize("is_parallel", [False, True])


def compiled(builder: Any, checkpointer: Any, is_parallel: bool) -> CompiledGraph:
    builder = builder.with_parallel() if is_parallel else builder
    return builder.compile().with_checkpointer(checkpointer)


@MODES
def test_branch_before_a_question_is_committed(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Scenario 95: a is folded, and b comes first of what is due."""
    builder = add_fan(new_builder(), {"a": note("a"), "b": Asker()})
    graph = compiled(builder, checkpointer, is_parallel)
    assert graph.run_with_thread("t", {}).state.log == ["a"]
    head = graph.get_state("t")
    assert (head.values.log, head.next_nodes) == (["a"], ["b"])
    assert head.metadata["interrupted_nodes"] == ["b"]


def branch_and_question(successor: Any) -> Any:
    """Branch a leads to x; branch b asks and adds its answer."""
    builder = add_fan(new_builder(), {"a": note("a", 1), "b": Asker()})
    return builder.add_node("x", successor).add_edge("a", "x")


@MODES
def test_successor_of_a_sibling_runs_once(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 96: 1 from a, 10 from x, 100 as the answer."""
    successor = Counted(note("x", 10))
    graph = compiled(branch_and_question(successor), checkpointer, is_parallel)
    graph.run_with_thread("t", {})
    assert successor.calls == 0
    assert graph.resume("t", Command(resume=100)).state.total == 111
    assert successor.calls == 1


@MODES
def test_answer_is_not_told_to_a_sibling(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 97: x runs in the same step and sees no answer."""

    def told(_state: Tally, ctx: NodeContext) -> Any:
        return {"mark": f"has_resume={ctx.has_resume}"}

    graph = compiled(branch_and_question(told), checkpointer, is_parallel)
    graph.run_with_thread("t", {})
    assert graph.resume("t", Command(resume=100)).state.mark == "has_resume=False"


class Worker:
    """Adds its Send argument; the one with argument `asks` asks first."""

    def __init__(self, asks: int) -> None:
        self.asks = asks
        self.calls: list[int] = []

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.calls.append(ctx.send_arg)
        if ctx.send_arg == self.asks and not ctx.has_resume:
            return Interrupt(f"may {ctx.send_arg} go on?")
        return {"total": ctx.send_arg, "log": [f"{ctx.send_arg}:{ctx.resume}"]}


def workers(worker: Worker) -> Any:
    """Three Sends to one node, with the arguments 1, 2 and 3."""
    builder = new_builder().add_edge(START, "split").add_node("worker", worker)
    return builder.add_node("split", go(*(Send("worker", n) for n in (1, 2, 3))))


@MODES
@pytest.mark.parametrize("asks", [1, 2, 3])
def test_sends_keep_their_arguments_over_a_pause(
    asks: int, checkpointer: Any, is_parallel: bool
) -> None:
    """Scenario 98: whichever of the three asks."""
    graph = compiled(workers(Worker(asks)), checkpointer, is_parallel)
    graph.run_with_thread("t", {})
    done = graph.resume("t", Command(resume="yes"))
    answers = ["yes" if n == asks else None for n in (1, 2, 3)]
    assert done.state.total == 6
    assert done.state.log == [f"{n + 1}:{answer}" for n, answer in enumerate(answers)]


def test_finished_worker_behind_a_question_is_reused(checkpointer: Any) -> None:
    """Replaces scenario 50 (decision 2): only the one that asked runs again."""
    worker = Worker(asks=2)
    graph = compiled(workers(worker), checkpointer, is_parallel=True)
    paused = graph.run_with_thread("t", {})
    assert (paused.state.total, graph.get_state("t").next_nodes) == (1, ["worker"] * 2)
    assert graph.resume("t", Command(resume="yes")).state.total == 6
    assert sorted(worker.calls) == [1, 2, 2, 3]


def test_worker_behind_a_question_waits_for_its_turn(checkpointer: Any) -> None:
    """Scenario 50 one by one: worker 3 starts with the resume."""
    worker = Worker(asks=2)
    graph = compiled(workers(worker), checkpointer, is_parallel=False)
    graph.run_with_thread("t", {})
    assert worker.calls == [1, 2]
    graph.resume("t", Command(resume="yes"))
    assert worker.calls == [1, 2, 2, 3]


def gate(_state: Tally, ctx: NodeContext) -> Any:
    if ctx.send_arg == "asks" and not ctx.has_resume:
        return Interrupt("open?")
    return {"log": [f"{ctx.send_arg}:{ctx.resume}"]}


@MODES
def test_answer_belongs_to_the_activation_that_asked(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Replaces scenario 100 (decision 3, D5): not to a new one of the same node."""
    builder = new_builder().add_node("a", note("a")).add_node("gate", gate)
    builder.add_node("split", go("a", Send("gate", "asks")))
    builder.add_edge(START, "split").add_edge("a", "gate")
    graph = compiled(builder, checkpointer, is_parallel)
    graph.run_with_thread("t", {})
    assert graph.get_state("t").next_nodes == ["gate", "gate"]
    done = graph.resume("t", Command(resume="yes"))
    assert done.state.log == ["a", "None:None", "asks:yes"]


class TwoAskers:
    """Branches a (leading to x) and b, which both ask; kept by `checkpointer`."""

    def __init__(self, checkpointer: Any) -> None:
        self.a, self.b, self.x = Asker("a?"), Asker("b?"), Counted(note("x"))
        self.graph = compiled(self.draft(), checkpointer, is_parallel=True)
        self.asked = self.graph.run_with_thread("t", {}).interrupts

    def draft(self) -> Any:
        builder = add_fan(new_builder(), {"a": self.a, "b": self.b})
        return builder.add_node("x", self.x).add_edge("a", "x")

    @property
    def open_payloads(self) -> list[Any]:
        return [q.payload for q in self.graph.get_state("t").pending_interrupts]


def test_all_questions_of_a_step_are_listed(checkpointer: Any) -> None:
    """Replaces scenario 101 (decision 3): the deciding one first, ids of their own."""
    askers = TwoAskers(checkpointer)
    assert [question.payload for question in askers.asked] == ["a?", "b?"]
    assert len({question.id for question in askers.asked}) == 2
    assert askers.open_payloads == ["a?", "b?"]


def test_bare_values_answer_in_order(checkpointer: Any) -> None:
    """Replaces scenario 101; IH-05: b is not run again by the answer to a."""
    askers = TwoAskers(checkpointer)
    paused = askers.graph.resume("t", Command(resume=1))
    assert (paused.status, askers.open_payloads) == (RunStatus.INTERRUPTED, ["b?"])
    assert (askers.a.calls, askers.b.calls, askers.x.calls) == (2, 1, 0)
    done = askers.graph.resume("t", Command(resume=2))
    assert done.state.log == ["a=1", "x", "b=2"]
    assert (askers.a.calls, askers.b.calls, askers.x.calls) == (2, 2, 1)


def test_questions_are_answered_in_any_order(checkpointer: Any) -> None:
    """Replaces scenario 101; IH-05: a is not run again by the answer to b."""
    askers = TwoAskers(checkpointer)
    second = askers.asked[1]
    askers.graph.resume("t", Command(answers={second.id: 2}))
    assert askers.open_payloads == ["a?"]
    assert (askers.a.calls, askers.b.calls) == (1, 2)
    done = askers.graph.resume("t", Command(resume=1))
    assert done.state.log == ["a=1", "b=2", "x"]
    assert (askers.a.calls, askers.b.calls) == (2, 2)


def test_later_answer_is_taken_in_a_sequential_step(checkpointer: Any) -> None:
    """Replaces scenario 101: how the step is run does not matter for its answers."""
    askers = TwoAskers(checkpointer)
    sequential = askers.draft().compile().with_checkpointer(checkpointer)
    sequential.resume("t", Command(answers={askers.asked[1].id: 2}))
    assert (askers.a.calls, askers.b.calls) == (1, 2)
    done = sequential.resume("t", Command(resume=1))
    assert done.state.log == ["a=1", "b=2", "x"]


def test_questions_are_answered_at_once(checkpointer: Any) -> None:
    """Replaces scenario 101: both by id."""
    askers = TwoAskers(checkpointer)
    first, second = (question.id for question in askers.asked)
    done = askers.graph.resume("t", Command(answers={second: 2, first: 1}))
    assert done.state.log == ["a=1", "b=2", "x"]


def test_answered_question_is_not_answered_twice(checkpointer: Any) -> None:
    """Decision 3: an old form is refused, and what it said before stays."""
    askers = TwoAskers(checkpointer)
    second = askers.asked[1].id
    askers.graph.resume("t", Command(answers={second: 2}))
    with pytest.raises(ResumeError, match=second):
        askers.graph.resume("t", Command(answers={second: 99}))
    done = askers.graph.resume("t", Command(resume=1))
    assert "b=2" in done.state.log
