"""Boundaries written behind the run (`async`): in order, or not at all.

The writes stop at points of a real store until a handler lets them go on, so that each
test knows what is written when. No write takes longer than the test needs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, Command, RetryableError, RetryPolicy, RunStatus
from stateknot.errors import RecursionLimitError
from tests.runtime.graphs import (
    PATIENCE,
    Asker,
    Counted,
    Flaky,
    Tally,
    add_line,
    new_builder,
    note,
    sources,
)
from tests.runtime.points import Crash, pointed, raising

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph
    from tests.runtime.clock import FakeClock


class Slow:
    """A graph of nodes in a row whose writes wait until node `last` was entered.

    `behind` is how many boundaries were stored by then. A node `then` behind it is past
    the limit.
    """

    def __init__(
        self, checkpointer: Any, last: Any, *names: str, then: Any = None
    ) -> None:
        self.entered = threading.Event()
        self.behind = -1
        self.last = last
        self.store = pointed(checkpointer).at("before commit", self._wait)
        builder = add_line(new_builder(), *names).add_node("last", self._enter)
        builder.add_edge(names[-1], "last")
        if then is not None:
            builder.add_node("then", then).add_edge("last", "then")
            builder.with_recursion_limit(len(names) + 1)
        self.graph = async_graph(builder, self.store)

    def _wait(self, _times: int) -> None:
        assert self.entered.wait(PATIENCE)

    def _enter(self, state: Tally, ctx: Any) -> Any:
        self.behind = len(self.store.stored)
        self.entered.set()
        asks = isinstance(self.last, Asker)
        return self.last(state, ctx) if asks else self.last(state)


def async_graph(builder: Any, store: Any) -> CompiledGraph:
    """Compile a graph that keeps its threads in `store`, behind its runs."""
    return builder.compile().with_checkpointer(store).with_durability("async")


def parents_are_stored(graph: CompiledGraph) -> bool:
    """Whether each record of thread "t" but the first stands on one that is there."""
    history = graph.get_state_history("t")
    ids = [snapshot.config["checkpoint_id"] for snapshot in history]
    parents = [s.parent_config["checkpoint_id"] for s in history if s.parent_config]
    return parents == ids[1:]


def test_all_is_written_when_the_run_returns(checkpointer: Any) -> None:
    """Scenario 76."""
    graph = async_graph(add_line(new_builder(), "a", "b"), checkpointer)
    graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input", "loop", "loop"]
    assert parents_are_stored(graph)


def test_node_does_not_wait_for_the_write_before_it(checkpointer: Any) -> None:
    """Scenario 77: it starts with nothing written, and at the end all is."""
    slow = Slow(checkpointer, note("last"), "a")
    slow.graph.run_with_thread("t", {})
    assert slow.behind == 0
    assert slow.store.stored == ["loop", "loop"]


def test_failed_write_fails_the_run(checkpointer: Any) -> None:
    """Scenario 78."""
    store = pointed(checkpointer).at("after commit", raising(OSError("disk full")))
    graph = async_graph(add_line(new_builder(), "a", "b", "c"), store)
    with pytest.raises(OSError, match="disk full"):
        graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input"]


def test_failed_run_can_go_on_from_what_is_written(checkpointer: Any) -> None:
    """Scenario 78: the lease is given back, and the run resumes at its head."""
    store = pointed(checkpointer).at(
        "before commit", raising(OSError("disk full"), on=2)
    )
    graph = async_graph(add_line(new_builder(), "a", "b", "c"), store)
    with pytest.raises(OSError, match="disk full"):
        graph.run_with_thread("t", {})
    assert store.find_thread_run("t").status is RunStatus.PENDING
    assert graph.get_state("t").values.log == ["a"]
    assert graph.resume("t").state.log == ["a", "b", "c"]


def test_slow_write_keeps_the_order(checkpointer: Any) -> None:
    """Scenario 79: the first is slow, and the others stay behind it."""
    slow = Slow(checkpointer, note("last"), "a", "b", "c")
    slow.graph.run_with_thread("t", {})
    steps = [s.metadata["step"] for s in slow.graph.get_state_history("t")]
    assert (slow.behind, steps) == (0, [4, 3, 2, 1, 0])


def test_nothing_is_written_behind_a_failed_write(checkpointer: Any) -> None:
    """Scenario 80: one write was tried although three were due."""
    slow = Slow(checkpointer, note("last"), "a", "b")

    def fail(times: int) -> None:
        slow._wait(times)
        raise OSError("disk full")

    slow.store.at("before commit", fail)
    with pytest.raises(OSError, match="disk full"):
        slow.graph.run_with_thread("t", {})
    assert slow.store.seen["before commit"] == 1
    assert sources(slow.graph, "t") == ["input"]


def test_limit_waits_for_the_writes(checkpointer: Any) -> None:
    """Scenario 81: all three are written when the error comes."""
    slow = Slow(checkpointer, note("last"), "a", "b", then=note("then"))
    with pytest.raises(RecursionLimitError):
        slow.graph.run_with_thread("t", {})
    assert slow.store.stored == ["loop"] * 3


def test_pause_waits_for_the_writes(checkpointer: Any) -> None:
    """Scenario 82: what was done and the question, one on the other."""
    slow = Slow(checkpointer, Asker(), "a")
    assert slow.graph.run_with_thread("t", {}).is_interrupted
    assert slow.store.stored == ["loop", "interrupt"]
    assert parents_are_stored(slow.graph)
    done = slow.graph.resume("t", Command(resume=2))
    assert done.state.log == ["a", "last=2"]


def test_failure_of_a_node_does_not_hide_that_of_a_write(checkpointer: Any) -> None:
    """Replaces scenario 83 (decision 8, D8): no record stands on a missing parent.

    The write's error is raised, and tells of the node's.
    """
    slow = Slow(checkpointer, Flaky("last"), "a")

    def fail(times: int) -> None:
        slow._wait(times)
        raise OSError("disk full")

    slow.store.at("before commit", fail)
    with pytest.raises(OSError, match="disk full") as failed:
        slow.graph.run_with_thread("t", {})
    (told,) = failed.value.__notes__
    assert "'last'" in told
    assert "last failed on call 1" in told
    assert sources(slow.graph, "t") == ["input"]


@pytest.mark.parametrize("error", [Crash(), KeyboardInterrupt(), SystemExit(3)])
def test_ended_process_waits_for_the_writes(
    checkpointer: Any, error: BaseException
) -> None:
    """Scenarios 71, 81: what was done stands, and the run is free to go on."""
    ended: list[BaseException] = [error]

    def end(_state: Tally) -> Any:
        if ended:
            raise ended.pop()
        return {"log": ["last"]}

    slow = Slow(checkpointer, end, "a", "b")
    with pytest.raises(type(error)):
        slow.graph.run_with_thread("t", {})
    assert slow.store.stored == ["loop", "loop"]
    assert slow.store.find_thread_run("t").status is RunStatus.PENDING
    assert slow.graph.resume("t").state.log == ["a", "b", "last"]


def test_failed_attempt_is_not_written_before_its_superstep(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 18: a failed attempt commits at once, behind what is still due."""
    builder = new_builder().add_edge(START, "a").add_node("a", note("a"))
    builder.add_node("b", Flaky("b", error=RetryableError)).add_edge("a", "b")
    seen: list[list[str]] = []
    store = pointed(checkpointer)
    store.at("before record", lambda _times: seen.append(list(store.stored)))
    graph = async_graph(builder, store)._with(clock=clock)
    graph.with_node_retry(RetryPolicy()).run_with_thread("t", {})
    assert seen == [["loop"]]


@pytest.mark.parametrize("mode", ["sync", "exit"])
def test_crash_without_background_writes_frees_the_run(
    checkpointer: Any, mode: str
) -> None:
    """Scenario 71: decided so that a run never looks as if it still ran."""
    crash: Callable[[Tally], Any] = Counted(note("b"))
    builder = add_line(new_builder(), "a").add_node("b", _crash_once(crash))
    graph = builder.add_edge("a", "b").compile().with_checkpointer(checkpointer)
    graph = graph.with_durability(mode)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    assert checkpointer.find_thread_run("t").status is RunStatus.PENDING
    assert graph.resume("t").state.log == ["a", "b"]


def _crash_once(then: Callable[[Tally], Any]) -> Callable[[Tally], Any]:
    crashed: list[bool] = []

    def handler(state: Tally) -> Any:
        if not crashed:
            crashed.append(True)
            raise Crash
        return then(state)

    return handler
