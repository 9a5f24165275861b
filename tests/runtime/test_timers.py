"""Timers: a node that completes into a wait, and who goes on when it is over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import END, Command, RunStatus, Send, Timer
from stateknot.errors import NodeFailedError, ResumeError
from stateknot.kernel.vocabulary import WaitKind
from stateknot.registry import register
from stateknot.runtime.worker import drive_run
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
    from stateknot import CompiledGraph

HOUR = timedelta(hours=1)
LATER = timedelta(minutes=61)


class Sleeper:
    """A handler that sets a timer; `calls` counts how often it ran."""

    def __init__(self, until: Any = HOUR, goto: Any = None) -> None:
        self.until, self.goto, self.calls = until, goto, 0

    def __call__(self, _state: Tally) -> Timer:
        self.calls += 1
        return Timer(self.until, goto=self.goto)


def sleeping(store: Any, sleeper: Any = None, after: Any = None) -> CompiledGraph:
    """Node `nap` leads to `after`."""
    builder = add_fan(new_builder("tests.timers"), {"nap": sleeper or Sleeper()})
    builder.add_node("after", after or note("after")).add_edge("nap", "after")
    return builder.compile().with_checkpointer(store)


def started(graph: CompiledGraph) -> str:
    """Start thread "t", which must wait; give its run's id."""
    execution = graph.run_with_thread("t", {})
    assert (execution.status, execution.interrupts) == (RunStatus.WAITING, [])
    return execution.run_id


def claim(time: Any, run_id: str) -> Any:
    """Take the run as a worker does; None when it is not due or taken."""
    with time.store.atomic():
        return time.store.claim(run_id, "worker")


def test_run_waits_behind_a_node_that_is_done(time: Any) -> None:
    """Decision 4: the node completed, its successor is due, no process sleeps."""
    graph = sleeping(time.store)
    run_id = started(graph)
    head = graph.get_state("t")
    assert (head.next_nodes, head.metadata["source"]) == (["after"], "loop")
    (timer,) = time.store.list_waits("t")
    assert (timer.kind, timer.node_id) == (WaitKind.TIMER, "nap")
    left = time.store.find_run(run_id).wake_at - time.store.now()
    assert timedelta(minutes=59) < left <= HOUR


def test_resume_before_it_is_due_is_refused(time: Any) -> None:
    """Decision 4: the error names the time, and nothing has changed."""
    graph = sleeping(time.store)
    run = time.store.find_run(started(graph))
    with pytest.raises(ResumeError, match=run.wake_at.isoformat()[:16]):
        graph.resume("t")
    assert time.store.find_run(run.id) == run


def test_resume_after_it_is_due_goes_on(time: Any) -> None:
    """Decision 4: the node that set it does not run again."""
    sleeper = Sleeper()
    graph = sleeping(time.store, sleeper)
    started(graph)
    time.pass_by(LATER)
    done = graph.resume("t")
    assert (done.status, done.visited, sleeper.calls) == ("completed", ["after"], 1)
    assert time.store.list_waits("t") == []


def test_retry_runs_it_now(time: Any) -> None:
    """TM-09: and the old time does nothing when it comes."""
    after = Counted(note("after"))
    graph = sleeping(time.store, after=after)
    run_id = started(graph)
    assert graph.retry("t").status is RunStatus.COMPLETED
    time.pass_by(LATER)
    assert claim(time, run_id) is None
    assert after.calls == 1


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-HOUR)]
)
def test_timer_until_a_time_of_day(zone: timezone, time: Any) -> None:
    """Decision 4: an aware time, whatever its zone."""
    until = datetime.now(zone).replace(microsecond=0) + HOUR
    graph = sleeping(time.store, Sleeper(until))
    run_id = started(graph)
    assert time.store.find_run(run_id).wake_at == until


def test_timer_until_a_past_time_is_over_at_once(time: Any) -> None:
    """It is due with its boundary: the next look at the run goes on."""
    graph = sleeping(time.store, Sleeper(datetime.now(UTC) - HOUR))
    started(graph)
    assert graph.resume("t").status is RunStatus.COMPLETED


@pytest.mark.parametrize("until", ["tomorrow", 5, datetime(2030, 1, 1)])  # noqa: DTZ001
def test_timer_without_a_zone_is_a_failure(until: Any, time: Any) -> None:
    """TM-10's kind: a naive time is nobody's."""
    graph = sleeping(time.store, Sleeper(until))
    with pytest.raises(NodeFailedError, match="time zone"):
        graph.run_with_thread("t", {})


def test_timer_with_goto_replaces_the_edge(time: Any) -> None:
    """Decisions 4 and 14."""
    graph = sleeping(time.store, Sleeper(goto=[END]))
    assert graph.run_with_thread("t", {}).status is RunStatus.COMPLETED
    assert time.store.list_waits("t") == []


def test_timer_leads_to_sends(time: Any) -> None:
    """Decision 4: what is due behind it keeps its arguments."""
    sends = [Send("w", 1), Send("w", 2)]
    builder = add_fan(new_builder(), {"nap": Sleeper(goto=sends)})
    graph = builder.add_node("w", note_arg).compile().with_checkpointer(time.store)
    started(graph)
    assert graph.retry("t").state.log == ["w:1", "w:2"]


def test_timer_in_a_loop_is_set_each_time(time: Any) -> None:
    """Decision 4: three naps, three waits, each closed by the pass behind it."""
    builder = add_fan(new_builder(), {"nap": Sleeper()}).add_node("work", note("w", 1))
    builder.add_edge("nap", "work").add_conditional_edges(
        "work",
        lambda state: "again" if state.total < 3 else "end",
        {"again": "nap", "end": END},
    )
    graph = builder.compile().with_checkpointer(time.store)
    started(graph)
    for nap in (1, 2):
        time.pass_by(LATER)
        assert (graph.resume("t").status, len(time.store.list_waits("t"))) == (
            RunStatus.WAITING,
            1,
        )
        assert graph.get_state("t").values.total == nap
    time.pass_by(LATER)
    assert graph.resume("t").state.total == 3


@pytest.mark.parametrize("is_parallel", [False, True])
def test_parallel_step_waits_for_its_longest_timer(
    is_parallel: bool, time: Any
) -> None:
    """Decision 4: the superstep behind begins when all of them are over."""
    nodes = {"a": Sleeper(HOUR, "x"), "b": Sleeper(2 * HOUR, "x"), "c": note("c")}
    builder = add_fan(new_builder(), nodes).add_node("x", note("x"))
    builder = builder.with_parallel() if is_parallel else builder
    graph = builder.compile().with_checkpointer(time.store)
    started(graph)
    time.pass_by(LATER)
    with pytest.raises(ResumeError, match="waits until"):
        graph.resume("t")
    time.pass_by(HOUR)
    assert graph.resume("t").state.log == ["c", "x"]


def with_question(store: Any) -> CompiledGraph:
    """A timer (leading to x) and a question in one step."""
    builder = add_fan(new_builder(), {"a": Sleeper(HOUR, "x"), "b": Asker()})
    builder.add_node("x", note("x"))
    return builder.with_parallel().compile().with_checkpointer(store)


def test_question_beside_a_timer_decides(time: Any) -> None:
    """Decisions 2 and 4: paused; the answer alone does not end the wait."""
    graph = with_question(time.store)
    assert graph.run_with_thread("t", {}).status is RunStatus.INTERRUPTED
    waiting = graph.resume("t", Command(resume=1))
    assert (waiting.status, waiting.state.log) == (RunStatus.WAITING, [])
    time.pass_by(LATER)
    assert graph.resume("t").state.log == ["x", "b=1"]


def test_question_beside_a_timer_that_is_over(time: Any) -> None:
    graph = with_question(time.store)
    graph.run_with_thread("t", {})
    time.pass_by(LATER)
    assert graph.resume("t", Command(resume=1)).state.log == ["x", "b=1"]


def test_retry_of_a_failure_ends_no_wait(time: Any) -> None:
    """Decision 4: a timer beside a failed node keeps its time."""
    nodes = {"a": Sleeper(HOUR, "x"), "b": Flaky("b")}
    builder = add_fan(new_builder(), nodes).add_node("x", note("x"))
    graph = builder.compile().with_checkpointer(time.store)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").status is RunStatus.WAITING
    time.pass_by(LATER)
    assert graph.resume("t").state.log == ["x", "b"]


def test_edit_while_waiting_keeps_the_timer(time: Any) -> None:
    """Decision 5: an edit is not a resume."""
    graph = sleeping(time.store)
    run_id = started(graph)
    graph.update_state("t", {"mark": "edited"})
    assert time.store.find_run(run_id).status is RunStatus.WAITING
    with pytest.raises(ResumeError, match="waits until"):
        graph.resume("t")
    time.pass_by(LATER)
    assert graph.resume("t").state == Tally(log=["after"], mark="edited")


def test_worker_claims_a_run_only_when_it_is_due(time: Any) -> None:
    """TM-07: before, a wake-up finds nothing to do."""
    graph = sleeping(time.store)
    run_id = started(graph)
    assert claim(time, run_id) is None
    time.pass_by(LATER)
    assert claim(time, run_id) is not None
    assert claim(time, run_id) is None


@pytest.mark.django_db(transaction=True)
def test_two_workers_and_two_sweeps_run_it_once() -> None:
    """TM-07: everything restarted, the clock an hour on, all at once."""
    from stateknot.runtime.recovery import sweep
    from stateknot.storage import DjangoCheckpointer
    from tests.runtime.moving_time import DatabaseTime

    time, after = DatabaseTime(), Counted(note("after"))
    builder = add_fan(new_builder("tests.timers.twice"), {"nap": Sleeper()})
    builder.add_node("after", after).add_edge("nap", "after")
    graph = register(builder.compile().with_checkpointer(time.store))
    run_id = started(graph)
    assert sweep().run_ids == ()
    time.pass_by(LATER)

    def look(works: bool) -> Any:
        store = DjangoCheckpointer()
        try:
            return drive_run(store, run_id).status if works else sweep().run_ids
        finally:
            store.thread_finished()

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(look, works) for works in (False, True, False, True)]
        found = [task.result(PATIENCE) for task in tasks]
    assert found.count(RunStatus.COMPLETED) <= 1
    drive_run(time.store, run_id)
    assert time.store.find_run(run_id).status is RunStatus.COMPLETED
    assert after.calls == 1
