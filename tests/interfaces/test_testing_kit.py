"""`stateknot.testing`: scripted answers, a clock that moves, runs in memory."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    GraphBuilder,
    GraphInput,
    Interrupt,
    NodeContext,
    RetryPolicy,
    RunStatus,
    Timer,
    append,
    shared_subgraph,
)
from stateknot.errors import NodeFailedError, RunError
from stateknot.testing import FakeClock, InMemory, in_turn, run_in_memory

pytest_plugins = ["stateknot.testing.fixtures"]

MONTH = timedelta(days=30)


class Log(BaseModel):
    log: Annotated[list[str], append] = []


def line(**nodes: Any) -> Any:
    builder = GraphBuilder("tests.kit", state=Log)
    for name, handler in nodes.items():
        builder.add_node(name, handler)
    return builder.add_sequence(START, *nodes).compile()


def note(name: str) -> Any:
    return lambda _state: {"log": [name]}


def ask(_state: Log, ctx: NodeContext) -> Any:
    if ctx.has_resume:
        return {"log": [f"{ctx.node_id}={ctx.resume}"]}
    return Interrupt(f"{ctx.node_id}?")


def wait_a_month(_state: Log) -> Timer:
    return Timer(MONTH)


def test_month_and_a_pause_take_no_time() -> None:
    """DO-05: nobody waits, and the clock says that the time has passed."""
    play = InMemory(line(a=note("a"), nap=wait_a_month, ask=ask), answers={"ask": 1})
    done = play.run()
    assert (done.status, done.state.log) == (RunStatus.COMPLETED, ["a", "ask=1"])
    assert play.clock.elapsed == MONTH.total_seconds()


@pytest.mark.django_db(transaction=True)
def test_boundaries_are_those_of_the_worker_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DO-05: the same checkpoints as a worker makes in the database."""
    from stateknot.storage import DjangoCheckpointer
    from tests.runtime.drives import admit, drive, make_due

    monkeypatch.setattr("stateknot.registry._graphs", {})
    graph = line(a=note("a"), nap=wait_a_month, ask=ask, b=note("b"))
    play = InMemory(graph, answers={"ask": 1})
    play.run()
    store = DjangoCheckpointer()
    stored = graph.with_checkpointer(store)
    admit(stored)
    drive(store)
    for _ in range(400):  # each makes two hours pass
        make_due(store)
    drive(store)
    stored.resume("t", Command(resume=1))
    assert told(play.history()) == told(reversed(stored.get_state_history("t")))


def told(history: Any) -> list[tuple[Any, ...]]:
    return [
        (s.metadata["source"], s.metadata["step"], s.next_nodes, s.values)
        for s in history
    ]


def test_answers_are_found_by_key_before_the_node() -> None:
    def form(_state: Log, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return [Interrupt("?", key="name"), Interrupt("?", key="age")]
        return {"log": [f"{ctx.answers['name']} {ctx.answers['age']}"]}

    play = InMemory(line(form=form), answers={"form.name": "Ida", "age": 7, "form": 0})
    assert play.run().state.log == ["Ida 7"]
    assert play.unused_answers == {"form"}


def test_answers_in_turn_are_given_one_by_one() -> None:
    """A node that asks until it is told yes."""

    def insist(_state: Log, ctx: NodeContext) -> Any:
        if ctx.resume == "yes":
            return {"log": [f"after {len(asked)}"]}
        asked.append(ctx.resume)
        return Interrupt("sure?")

    asked: list[Any] = []
    done = run_in_memory(line(insist=insist), answers={"insist": in_turn("no", "yes")})
    assert done.state.log == ["after 2"]


def test_answers_that_ran_out_leave_the_run_paused() -> None:
    graph = line(one=ask, two=ask)
    turn = in_turn("first")
    paused = run_in_memory(graph, answers={"one": turn, "two": turn})
    assert (paused.status, paused.interrupts[0].node) == ("interrupted", "two")


def test_answer_may_be_a_function_of_the_question() -> None:
    answers = {"ask": lambda question: question.payload.upper()}
    assert run_in_memory(line(ask=ask), answers=answers).state.log == ["ask=ASK?"]


def test_question_without_an_answer_stays_open() -> None:
    paused = run_in_memory(line(ask=ask))
    assert [i.payload for i in paused.interrupts] == ["ask?"]


def test_wrong_answer_is_refused_as_in_production() -> None:
    from stateknot.errors import AnswerError

    graph = line(ask=lambda _, ctx: None if ctx.has_resume else Interrupt(schema=int))
    with pytest.raises(AnswerError):
        run_in_memory(graph, answers={"ask": "seven"})


def test_deadline_of_a_question_passes() -> None:
    def expiring(_state: Log, ctx: NodeContext) -> Any:
        if ctx.has_resume:
            return {"log": [ctx.resume]}
        return Interrupt("?", expires_in=MONTH, default="late")

    play = InMemory(line(ask=expiring))
    assert play.run().state.log == ["late"]
    assert play.clock.elapsed == MONTH.total_seconds()


def test_long_retry_is_stored_and_waited_for() -> None:
    """As on a worker: no process sleeps for an hour."""
    failures = [1]

    def shaky(_state: Log) -> dict[str, Any]:
        if failures:
            raise ConnectionError(f"{failures.pop()}")
        return {"log": ["there"]}

    policy = RetryPolicy(initial_interval=3600, maximum_interval=3600)
    play = InMemory(line(shaky=shaky).with_node_retry(policy))
    assert play.run().state.log == ["there"]
    assert (play.clock.sleeps, play.clock.elapsed) == ([], 3600)


def test_clock_of_the_test_is_left_alone() -> None:
    play = InMemory(line(nap=wait_a_month, b=note("b")), advance=False)
    assert play.run().status is RunStatus.WAITING
    play.clock.advance(MONTH - timedelta(seconds=1))
    from stateknot.errors import ResumeError

    with pytest.raises(ResumeError, match="waits until"):
        play.resume()
    play.clock.advance(timedelta(seconds=1))
    assert play.resume().state.log == ["b"]


def test_inputs_seed_the_first_superstep() -> None:
    graph = line(a=note("a"), b=lambda _, ctx: {"log": [f"b{ctx.send_arg}"]})
    done = run_in_memory(graph, inputs=[GraphInput.new("b", 4)])
    assert done.state.log == ["b4"]


def test_child_graphs_wait_and_ask_as_well() -> None:
    child = line(c=note("c"), nap=wait_a_month, ask=ask)
    play = InMemory(line(child=shared_subgraph(child)), answers={"ask": "ok"})
    assert play.run().state.log == ["c", "ask=ok"]
    assert play.clock.elapsed == MONTH.total_seconds()


def test_failure_is_raised_and_retried_by_hand() -> None:
    failures = [1]

    def once(_state: Log) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise ValueError("first")
        return {"log": ["then"]}

    play = InMemory(line(a=note("a"), once=once))
    with pytest.raises(NodeFailedError):
        play.run()
    assert play.state.log == ["a"]
    assert play.retry().state.log == ["a", "then"]


def test_run_that_never_rests_is_ended() -> None:
    """A node that asks for ever would hang the test session."""
    graph = line(ask=lambda _state, _ctx: Interrupt("again?"))
    with pytest.raises(RunError, match="for ever"):
        run_in_memory(graph, answers={"ask": "yes"})


def test_graph_itself_is_not_changed() -> None:
    graph = line(a=note("a"))
    InMemory(graph).run()
    assert graph.config.checkpointer is None
    assert InMemory(graph).state is None


def test_clock_advances_to_a_moment_but_never_back() -> None:
    clock = FakeClock()
    clock.advance_to(clock.now() + MONTH)
    clock.advance_to(clock.start)
    assert clock.elapsed == MONTH.total_seconds()


def test_fixtures_share_the_clock(in_memory: Any, fake_clock: FakeClock) -> None:
    play = in_memory(line(nap=wait_a_month, b=note("b")))
    assert play.clock is fake_clock
    assert play.run().state.log == ["b"]


def test_fixture_runs_in_memory(run_in_memory: Any) -> None:
    assert run_in_memory(line(a=note("a"))).state.log == ["a"]


def test_testing_needs_neither_django_nor_pytest() -> None:
    """A project without them can use it; the fixtures are a module of their own."""
    code = (
        "import sys, stateknot.testing as kit; kit.InMemory; "
        "sys.exit(any(name in sys.modules for name in ('django', 'pytest')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
