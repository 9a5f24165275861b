"""Answers that come twice, at once, late, or while the run is driven."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, Interrupt, NodeContext, RunStatus
from stateknot.errors import AlreadyAnsweredError, ResumeError, ThreadBusyError
from stateknot.registry import register
from stateknot.runtime.admission import answer_due
from stateknot.runtime.worker import drive_run, take_up_answers
from tests.runtime.graphs import (
    PATIENCE,
    Asker,
    Counted,
    Tally,
    add_fan,
    answered,
    asking,
    compiled,
    new_builder,
    note,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_second_answer_by_id_keeps_the_first(checkpointer: Any) -> None:
    """IH-01: an old form is told that its question was answered."""
    graph = asking(Asker(), checkpointer)
    (asked,) = graph.run_with_thread("t", {}).interrupts
    graph.resume("t", Command(answers={asked.id: 1}))
    with pytest.raises((AlreadyAnsweredError, ResumeError)):
        graph.resume("t", Command(answers={asked.id: 9}))
    assert graph.get_state("t").values.total == 1


def test_bare_answer_behind_an_answer_is_refused(checkpointer: Any) -> None:
    """IH-01: answered, not driven yet; the first answer is kept."""
    graph = asking(Asker(), checkpointer)
    graph.run_with_thread("t", {})
    (wait,) = checkpointer.list_waits("t")
    with checkpointer.atomic():
        checkpointer.answer(wait.id, 1, actor="ada")
    with pytest.raises(AlreadyAnsweredError, match="ada"):
        graph.resume("t", Command(resume=9))
    assert graph.resume("t").state.total == 1


def test_of_two_answers_at_once_one_is_taken(checkpointer: Any) -> None:
    """IH-01: two forms sent together; the successor runs once."""
    after, start = Counted(note("after")), threading.Barrier(2)
    builder = add_fan(new_builder(), {"ask": Asker()}).add_node("after", after)
    graph = compiled(builder.add_edge("ask", "after"), checkpointer)
    (asked,) = graph.run_with_thread("t", {}).interrupts

    def send(value: int) -> Any:
        start.wait(PATIENCE)
        try:
            return graph.resume("t", Command(answers={asked.id: value})).state.total
        except (ResumeError, ThreadBusyError):
            return None
        finally:
            checkpointer.thread_finished()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(send, (1, 2)))
    assert sorted(result is None for result in results) == [False, True]
    (taken,) = (result for result in results if result is not None)
    assert (graph.get_state("t").values.total, after.calls) == (taken, 1)


class Driven:
    """A graph over a and b that both ask; `b` waits inside its handler to go on.

    `during` is called once, by the handler of b after its answer.
    """

    def __init__(self, checkpointer: Any, graph_id: str) -> None:
        self.checkpointer = checkpointer
        self.during: Callable[[], None] = lambda: None
        # A registered graph keeps its handlers, so each store has one of its own.
        graph_id += f".{type(checkpointer).__name__.lower()}"
        builder = add_fan(new_builder(graph_id), {"a": Asker("a?"), "b": self.busy})
        self.graph = compiled(builder.with_parallel(), checkpointer)
        register(self.graph)
        self.a, self.b = self.graph.run_with_thread("t", {}).interrupts

    def busy(self, state: Tally, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return Interrupt("b?")
        self.during()
        return answered(state, ctx)

    def wait_of(self, question: Interrupt) -> str:
        found = self.checkpointer.find_question("t", question.id)
        return str(found.id)

    def answer(self, question: Interrupt, value: Any) -> None:
        """Store an answer from another thread, as a second request does."""

        def send() -> None:
            try:
                with self.checkpointer.atomic():
                    self.checkpointer.answer(self.wait_of(question), value)
            finally:
                self.checkpointer.thread_finished()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(send).result(PATIENCE)


def test_answer_while_the_run_is_driven_is_taken_up(checkpointer: Any) -> None:
    """IH-13: a is answered while b is still running; nothing is left to answer."""
    thread = Driven(checkpointer, "tests.answered_meanwhile")
    thread.during = lambda: thread.answer(thread.a, 5)
    paused = thread.graph.resume("t", Command(answers={thread.b.id: "go"}))
    assert (paused.status, paused.interrupts) == (RunStatus.INTERRUPTED, [])
    assert take_up_answers(checkpointer, paused.run_id)
    driven = drive_run(checkpointer, paused.run_id)
    assert (driven.status, driven.wants_more) == (RunStatus.COMPLETED, False)
    assert thread.graph.get_state("t").values.log == ["a=5", "b=go"]


def test_worker_takes_up_what_was_answered_meanwhile(checkpointer: Any) -> None:
    """IH-13: the drive that was too late asks for another one itself."""
    thread = Driven(checkpointer, "tests.answered_on_a_worker")
    thread.during = lambda: thread.answer(thread.a, 5)
    thread.answer(thread.b, "go")
    run_id = checkpointer.find_thread_run("t").id
    assert take_up_answers(checkpointer, run_id)
    first = drive_run(checkpointer, run_id)
    assert (first.status, first.wants_more) == (RunStatus.INTERRUPTED, True)
    assert drive_run(checkpointer, run_id).status is RunStatus.COMPLETED
    assert thread.graph.get_state("t").values.log == ["a=5", "b=go"]


def test_nothing_is_taken_up_without_an_answer(checkpointer: Any) -> None:
    """IH-13: a sweep finds nothing to repair, and nobody runs for nothing (IH-05)."""
    thread = Driven(checkpointer, "tests.nothing_answered")
    run_id = checkpointer.find_thread_run("t").id
    assert not take_up_answers(checkpointer, run_id)
    assert answer_due(checkpointer, "t") == 0
    thread.graph.resume("t", Command(answers={thread.a.id: 1}))
    assert not take_up_answers(checkpointer, run_id)


def test_resume_while_the_run_is_driven_is_refused(checkpointer: Any) -> None:
    """Decision 11: a second driver does not come in, and the answer is not lost."""
    thread = Driven(checkpointer, "tests.resumed_meanwhile")
    refused: list[str] = []

    def resume() -> None:
        with pytest.raises(ThreadBusyError) as busy:
            thread.graph.resume("t", Command(answers={thread.a.id: 5}))
        refused.append(busy.value.status)

    thread.during = resume
    paused = thread.graph.resume("t", Command(answers={thread.b.id: "go"}))
    assert refused == ["running"]
    assert [question.id for question in paused.interrupts] == [thread.a.id]
