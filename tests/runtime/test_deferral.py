"""Retries on a worker: a long wait is a stored time, and no process sleeps for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, RetryableError, RetryPolicy, RunStatus
from stateknot.errors import NodeError, ResumeError
from tests.runtime.drives import admit, drive, make_due, tried
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    add_fan,
    new_builder,
    note,
    sources,
)

if TYPE_CHECKING:
    from tests.runtime.clock import FakeClock

MINUTE = RetryPolicy(3, initial_interval=60, maximum_interval=600, jitter=0)

pytestmark = pytest.mark.usefixtures("empty_registry")


def deferring(
    checkpointer: Any, clock: FakeClock, policy: RetryPolicy = MINUTE, **nodes: Any
) -> Any:
    """Admit a run of `nodes` side by side, of which failed ones are tried again."""
    graph = add_fan(new_builder(), nodes).with_parallel().compile()
    graph = graph.with_checkpointer(checkpointer)._with(clock=clock)
    graph = graph.with_node_retry(policy)
    admit(graph)
    return graph


def seconds_left(checkpointer: Any) -> float:
    """How long the thread's run still waits, by the store's clock."""
    run = checkpointer.find_thread_run("t")
    left: float = (run.wake_at - checkpointer.now()).total_seconds()
    return left


def test_long_wait_is_stored(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: the run waits, its head does not move, and nobody slept."""
    graph = deferring(checkpointer, clock, a=Flaky("a", error=RetryableError))
    assert drive(checkpointer).status is RunStatus.WAITING
    assert 50 < seconds_left(checkpointer) <= 60
    assert clock.sleeps == []
    assert sources(graph, "t") == ["input"]
    assert tried(checkpointer) == [("a", 1, "failed")]


def test_run_is_not_driven_before_its_time(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: an early wake-up finds nothing due."""
    work = Flaky("a", error=RetryableError)
    deferring(checkpointer, clock, a=work)
    drive(checkpointer)
    assert drive(checkpointer).status is None
    assert work.calls == 1


def test_run_goes_on_when_it_is_due(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: attempts count on, and a wait grows with them."""
    work = Flaky("a", failures=2, error=RetryableError)
    graph = deferring(checkpointer, clock, a=work)
    drive(checkpointer)
    make_due(checkpointer)
    assert drive(checkpointer).status is RunStatus.WAITING
    assert 110 < seconds_left(checkpointer) <= 120
    make_due(checkpointer)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert graph.get_state("t").values.log == ["a"]
    numbers = [number for _node, number, _status in tried(checkpointer)]
    assert numbers == [1, 2, 3]


def test_last_attempt_fails_the_run(checkpointer: Any, clock: FakeClock) -> None:
    """EX-11: three attempts, listed, and no fourth however often it is woken."""
    work = Flaky("a", failures=99, error=RetryableError)
    graph = deferring(checkpointer, clock, a=work)
    for _ in range(3):
        drive(checkpointer)
        make_due(checkpointer)
    assert {drive(checkpointer).status for _ in range(10)} == {None}
    assert (work.calls, len(tried(checkpointer))) == (3, 3)
    run = checkpointer.find_thread_run("t")
    assert (run.status, run.error["attempts"]) == (RunStatus.FAILED, 3)
    assert graph.get_state("t").metadata["failed_node"] == "a"


@pytest.mark.parametrize("error", [ValueError, lambda text: NodeError("x.y", text)])
def test_error_that_is_not_retryable_is_tried_once(
    checkpointer: Any, clock: FakeClock, error: Any
) -> None:
    """EX-11: a fault of the code does not run for ever."""
    work = Flaky("a", failures=9, error=error)
    deferring(checkpointer, clock, a=work)
    assert drive(checkpointer).status is RunStatus.FAILED
    assert {drive(checkpointer).status for _ in range(10)} == {None}
    assert work.calls == 1


def test_short_wait_is_slept(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: up to a second, since storing it would cost more."""
    policy = RetryPolicy(initial_interval=1, jitter=0)
    work = Flaky("a", error=RetryableError)
    deferring(checkpointer, clock, policy, a=work)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert clock.sleeps == [1]


def test_server_that_said_when_is_not_asked_before(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 9: Retry-After is stored as the time to wait."""
    work = Flaky("a", 1, lambda text: RetryableError(text, retry_after=600))
    deferring(checkpointer, clock, a=work)
    assert drive(checkpointer).status is RunStatus.WAITING
    assert 590 < seconds_left(checkpointer) <= 600


def test_caller_sleeps_itself(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: only a worker has better things to do."""
    graph = add_fan(new_builder(), {"a": Flaky("a", error=RetryableError)}).compile()
    graph = graph.with_checkpointer(checkpointer)._with(clock=clock)
    assert graph.with_node_retry(MINUTE).run_with_thread("t", {}).state.log == ["a"]
    assert clock.sleeps == [60]


def test_finished_sibling_is_not_run_again(checkpointer: Any, clock: FakeClock) -> None:
    """Decisions 2, 9: before or behind the branch that waits."""
    first, last = Counted(note("a")), Counted(note("c"))
    flaky = Flaky("b", error=RetryableError)
    graph = deferring(checkpointer, clock, a=first, b=flaky, c=last)
    drive(checkpointer)
    make_due(checkpointer)
    drive(checkpointer)
    assert graph.get_state("t").values.log == ["a", "b", "c"]
    assert (first.calls, flaky.calls, last.calls) == (1, 2, 1)


def test_longest_wait_of_a_step_counts(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 9: two branches wait, and the step goes on once."""
    soon = Flaky("a", error=RetryableError)
    late = Flaky("b", 1, lambda text: RetryableError(text, retry_after=600))
    deferring(checkpointer, clock, a=soon, b=late)
    assert drive(checkpointer).status is RunStatus.WAITING
    assert 590 < seconds_left(checkpointer) <= 600


def test_failure_in_front_decides(checkpointer: Any, clock: FakeClock) -> None:
    """Decision 2: a run that failed does not wait for what stands behind."""
    flaky = Flaky("b", error=RetryableError)
    graph = deferring(checkpointer, clock, a=Flaky("a"), b=flaky)
    assert drive(checkpointer).status is RunStatus.FAILED
    assert graph.retry("t").state.log == ["a", "b"]
    assert flaky.calls == 2


def test_question_behind_a_wait_can_be_answered(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 3: it is listed while the run waits, and asked once."""
    asker = Asker()
    graph = deferring(checkpointer, clock, a=Flaky("a", error=RetryableError), b=asker)
    assert drive(checkpointer).status is RunStatus.WAITING
    (asked,) = graph.get_state("t").pending_interrupts
    done = graph.resume("t", Command(answers={asked.id: 4}))
    assert done.state.log == ["a", "b=4"]
    assert asker.calls == 2


def test_plain_resume_does_not_hurry_a_wait(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 9: it says until when the run waits; a retry runs it now."""
    graph = deferring(checkpointer, clock, a=Flaky("a", error=RetryableError))
    drive(checkpointer)
    with pytest.raises(ResumeError, match="waits until"):
        graph.resume("t")
    assert graph.retry("t").state.log == ["a"]


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_wait_keeps_what_was_done_before_it(
    checkpointer: Any, clock: FakeClock, mode: str
) -> None:
    """Decision 8: in every mode what lies before is written when the run waits."""
    flaky = Flaky("c", failures=2, error=RetryableError)
    builder = add_fan(new_builder(), {"a": note("a")}).add_node("b", note("b"))
    builder.add_node("c", flaky).add_sequence("a", "b", "c")
    graph = builder.compile().with_checkpointer(checkpointer)._with(clock=clock)
    graph = graph.with_node_retry(RetryPolicy(2, initial_interval=60))
    admit(graph.with_durability(mode))
    assert drive(checkpointer).status is RunStatus.WAITING
    assert graph.get_state("t").next_nodes == ["c"]
    make_due(checkpointer)
    assert drive(checkpointer).status is RunStatus.FAILED
    assert [row for row in tried(checkpointer) if row[0] == "c"] == [
        ("c", 1, "failed"),
        ("c", 2, "failed"),
    ]
