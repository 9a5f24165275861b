"""The run deadline: looked at between supersteps, counted over all drives of a run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, Command, RunStatus
from stateknot.errors import NodeFailedError, RunDeadlineError
from stateknot.runtime.budget import Quantum
from tests.runtime.drives import admit, drive
from tests.runtime.graphs import Asker, Flaky, Tally, new_builder, note, sources

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph
    from tests.runtime.clock import FakeClock


def taking(clock: FakeClock, seconds: float, then: Any) -> Callable[..., Any]:
    """Make a handler that takes so long."""

    def handler(state: Tally, ctx: Any) -> Any:
        clock.sleep(seconds)
        return then(state, ctx) if isinstance(then, Asker) else then(state)

    return handler


def line(clock: FakeClock, checkpointer: Any, *seconds: float) -> CompiledGraph:
    """A graph of nodes n0, n1, ... in a row that take so long."""
    builder = new_builder()
    names = [f"n{place}" for place in range(len(seconds))]
    for name, duration in zip(names, seconds, strict=True):
        builder.add_node(name, taking(clock, duration, note(name)))
    builder.add_sequence(START, *names)
    graph = builder.compile().with_checkpointer(checkpointer)
    return graph._with(clock=clock)


def stop(call: Callable[[], Any]) -> RunDeadlineError:
    """Make a call that must end at the deadline; give the error."""
    with pytest.raises(RunDeadlineError) as stopped:
        call()
    return stopped.value


def test_run_past_its_deadline_starts_no_other_node(
    clock: FakeClock, checkpointer: Any
) -> None:
    """Scenario 67: 20 ms, of which the first node takes 40."""
    graph = line(clock, checkpointer, 0.04, 0).with_run_deadline(0.02)
    error = stop(lambda: graph.run_with_thread("t", {}))
    assert (error.deadline_seconds, error.code) == (
        0.02,
        "runtime.graph.deadline_exceeded",
    )
    assert graph.get_state("t").values.log == ["n0"]
    assert sources(graph, "t") == ["input", "loop"]


def test_run_within_its_deadline_completes(clock: FakeClock, checkpointer: Any) -> None:
    """Scenario 68: a timedelta does too."""
    graph = line(clock, checkpointer, 1, 1).with_run_deadline(timedelta(minutes=1))
    assert graph.run_with_thread("t", {}).status is RunStatus.COMPLETED


def test_last_node_may_overrun(clock: FakeClock, checkpointer: Any) -> None:
    """Scenario 68: nothing is due behind it, so nothing is refused."""
    graph = line(clock, checkpointer, 0, 9).with_run_deadline(1)
    assert graph.run_with_thread("t", {}).visited == ["n0", "n1"]


def test_deadline_of_zero_starts_nothing(clock: FakeClock, checkpointer: Any) -> None:
    """Scenario 67 at its edge."""
    graph = line(clock, checkpointer, 0).with_run_deadline(0)
    stop(lambda: graph.run_with_thread("t", {}))
    assert sources(graph, "t") == ["input"]


def test_stopped_run_goes_on_without_its_deadline(
    clock: FakeClock, checkpointer: Any
) -> None:
    """Scenario 69: from the last boundary, and nothing runs again."""
    graph = line(clock, checkpointer, 2, 2, 0).with_run_deadline(3)
    stop(lambda: graph.run_with_thread("t", {}))
    done = graph.with_run_deadline(None).resume("t")
    assert (done.visited, done.state.log) == (["n2"], ["n0", "n1", "n2"])


def test_plain_resume_stops_again(clock: FakeClock, checkpointer: Any) -> None:
    """Decision 6: the time is used up, and waiting outside does not count."""
    graph = line(clock, checkpointer, 2, 0).with_run_deadline(1)
    stop(lambda: graph.run_with_thread("t", {}))
    clock.sleep(1_000)
    stop(lambda: graph.resume("t"))
    assert graph.with_run_deadline(2.5).resume("t").visited == ["n1"]


def test_limit_leaves_no_checkpoint_of_its_own(
    clock: FakeClock, checkpointer: Any
) -> None:
    """Scenario 70: the failed run stands at its last boundary, and says why."""
    graph = line(clock, checkpointer, 2, 0).with_run_deadline(1)
    stop(lambda: graph.run_with_thread("t", {}))
    run = checkpointer.find_thread_run("t")
    assert (run.status, run.error["kind"]) == (RunStatus.FAILED, "limit")
    assert run.head_id == graph.get_state("t").config["checkpoint_id"]
    assert graph.get_state("t").metadata["failed_node"] is None


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_time_counts_over_a_pause(
    clock: FakeClock, checkpointer: Any, mode: str
) -> None:
    """Decision 6 (D6): a pause does not evade the deadline, nor count itself."""
    builder = new_builder().add_node("b", note("b")).add_edge("ask", "b")
    builder.add_edge(START, "ask").add_node("ask", taking(clock, 2, Asker()))
    graph = builder.compile().with_checkpointer(checkpointer)._with(clock=clock)
    graph = graph.with_run_deadline(3).with_durability(mode)
    assert graph.run_with_thread("t", {}).is_interrupted
    clock.sleep(1_000)
    stop(lambda: graph.resume("t", Command(resume=1)))
    assert graph.get_state("t").next_nodes == ["b"]


def test_time_counts_over_failures(clock: FakeClock, checkpointer: Any) -> None:
    """Decision 6: a failed superstep took its time as well."""
    work = taking(clock, 2, Flaky("a", failures=9))
    builder = new_builder().add_node("a", work).add_edge(START, "a")
    graph = builder.compile().with_checkpointer(checkpointer)._with(clock=clock)
    graph = graph.with_run_deadline(3)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    with pytest.raises(NodeFailedError):
        graph.retry("t")
    stop(lambda: graph.retry("t"))


@pytest.mark.usefixtures("empty_registry")
def test_time_counts_over_drives(clock: FakeClock, checkpointer: Any) -> None:
    """Decision 6 on workers: two drives of 2 s use up 3 s."""
    graph = line(clock, checkpointer, 2, 2, 0).with_run_deadline(3)
    admit(graph)
    one = Quantum(supersteps=1)
    statuses = [drive(checkpointer, one).status for _ in range(3)]
    assert statuses == [RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.FAILED]
    assert graph.get_state("t").values.log == ["n0", "n1"]
