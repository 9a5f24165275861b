"""Cancelling runs that are driven: when it is seen, and what is kept.

Handlers are held at a gate, so that the request comes while they run.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    NodeContext,
    RetryableError,
    RetryPolicy,
    RunStatus,
    shared_subgraph,
)
from stateknot.errors import CheckpointError, ResumeError, RunCancelledError, RunError
from stateknot.runtime.events import CollectingSink
from tests.runtime.drives import attempts_of
from tests.runtime.families import asking_child, line
from tests.runtime.graphs import PATIENCE, Tally, add_fan, new_builder, note

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future


@pytest.fixture(autouse=True)
def short_lease(settings: Any) -> None:
    """Let the heartbeat come after a third of a second."""
    settings.STATEKNOT = {"lease_seconds": 1.0}


class Gate:
    """A handler that says that it runs, and waits until it is let go."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Event(), threading.Event()

    def __call__(self, _state: Tally) -> Any:
        self.entered.set()
        assert self.let_go.wait(PATIENCE)
        return {"log": ["held"]}


class Overtaken(Gate):
    """A handler that goes on until its drive knows of the request, and never asks."""

    calls = 0

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.calls += 1
        self.entered.set()
        while not ctx._is_cancelled():
            assert not self.let_go.wait(0.01)
        return {"log": ["held"]}


class Asking(Gate):
    """A handler that stops as soon as it is told to."""

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.entered.set()
        while not ctx.is_cancelled():
            assert not self.let_go.wait(0.01)
        return {"log": ["half"]}


@contextmanager
def started(graph: Any, gate: Gate, state: Any = None) -> Iterator[Future[Any]]:
    """Run `graph` in a thread until its handler is at the gate."""

    def run() -> Any:
        try:
            return graph.run_with_thread("t", state or {})
        finally:
            graph.config.checkpointer.thread_finished()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            assert gate.entered.wait(PATIENCE)
            yield running
        finally:
            gate.let_go.set()


def run_of(graph: Any, namespace: tuple[str, ...] = ()) -> Any:
    return graph.config.checkpointer.find_thread_run("t", namespace)


def kinds(graph: Any) -> list[str]:
    rows = graph.config.checkpointer.list_journal(run_of(graph).id)
    return [event.kind for row in rows for event in row.events]


def test_wq_19_late_result_cannot_change_the_status(checkpointer: Any) -> None:
    """WQ-19: A is asleep when the run is cancelled; B does not run, A is kept."""
    gate = Gate()
    graph = line("tests.two", {"a": gate, "b": note("b")})
    graph = graph.with_checkpointer(checkpointer)
    with started(graph, gate) as running:
        assert graph.cancel("t", reason="not needed") is RunStatus.RUNNING
        gate.let_go.set()
        with pytest.raises(RunCancelledError, match="not needed"):
            running.result(PATIENCE)
    assert run_of(graph).status is RunStatus.CANCELLED
    assert graph.get_state("t").values.log == ["held"]
    assert kinds(graph)[-1] == "run.cancelled"
    with pytest.raises(ResumeError, match="cancelled"):
        graph.resume("t")
    assert graph.run_with_thread("t", {}).status is RunStatus.COMPLETED


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_wq_19_run_that_writes_late_is_stopped_by_its_heartbeat(
    checkpointer: Any, durability: str
) -> None:
    """WQ-19: its boundaries cannot tell it in time, so the next beat does."""
    late = Overtaken()
    graph = line("tests.two", {"a": late, "b": note("b")})
    graph = graph.with_checkpointer(checkpointer).with_durability(durability)
    with started(graph, late) as running:
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert run_of(graph).status is RunStatus.CANCELLED
    assert graph.get_state("t").values.log == ["held"]


def test_wq_19_last_node_does_not_complete_a_cancelled_run(checkpointer: Any) -> None:
    """WQ-19: the request came before the end, so that is what the run came to."""
    gate, sink = Gate(), CollectingSink()
    graph = line("tests.one", {"a": gate}).with_checkpointer(checkpointer)
    graph = graph.with_event_sink(sink)
    with started(graph, gate) as running:
        graph.cancel("t")
        gate.let_go.set()
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert run_of(graph).status is RunStatus.CANCELLED
    assert graph.get_state("t").values.log == ["held"]
    assert "run.completed" not in kinds(graph)
    assert "run.completed" not in [event.kind for event in sink.events]


def test_sync_handler_that_asks_is_told(checkpointer: Any) -> None:
    """What it gives after it was told is no result."""
    asking = Asking()
    graph = line("tests.two", {"a": note("a"), "ask": asking, "b": note("b")})
    graph = graph.with_checkpointer(checkpointer)
    with started(graph, asking) as running:
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert graph.get_state("t").values.log == ["a"]
    assert [attempt.node_id for attempt in attempts_of(checkpointer)] == ["a"]


def test_failure_of_a_handler_that_was_told_is_none(checkpointer: Any) -> None:
    """It is neither tried again nor recorded as a failure of its node."""

    class Raising(Asking):
        def __call__(self, state: Tally, ctx: NodeContext) -> Any:
            super().__call__(state, ctx)
            raise RetryableError("stopped half way")

    raising = Raising()
    graph = line("tests.one", {"a": raising}).with_checkpointer(checkpointer)
    graph = graph.with_node_retry(RetryPolicy(max_attempts=3))
    with started(graph, raising) as running:
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert run_of(graph).error is None
    assert attempts_of(checkpointer) == []


def test_cancelled_run_is_not_tried_again(checkpointer: Any) -> None:
    """The attempt that failed is kept; the next one does not begin."""

    class Failing(Overtaken):
        def __call__(self, state: Tally, ctx: NodeContext) -> Any:
            super().__call__(state, ctx)
            raise RetryableError("busy")

    failing = Failing()
    graph = line("tests.one", {"a": failing}).with_checkpointer(checkpointer)
    graph = graph.with_node_retry(RetryPolicy(max_attempts=3, initial_interval=0.01))
    with started(graph, failing) as running:
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert failing.calls == 1
    assert [a.status for a in attempts_of(checkpointer)] == ["failed"]


def test_heartbeat_of_a_handler_raises(checkpointer: Any) -> None:
    class Beating(Gate):
        def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
            super().__call__(_state)
            ctx.heartbeat()
            raise AssertionError("the run was cancelled")

    beating = Beating()
    graph = line("tests.one", {"a": beating}).with_checkpointer(checkpointer)
    with started(graph, beating) as running:
        graph.cancel("t")
        beating.let_go.set()
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert run_of(graph).status is RunStatus.CANCELLED


@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_async_handler_of_a_cancelled_run_is_cancelled(
    checkpointer: Any, timeout: float | None
) -> None:
    """It hears of it where it waits, and can clean up."""
    gate, cleaned = Gate(), []

    async def work(_state: Tally) -> None:
        gate.entered.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cleaned.append("up")
            raise

    builder = new_builder().add_node("a", work, timeout=timeout)
    graph = builder.add_sequence("__start__", "a").compile()
    graph = graph.with_checkpointer(checkpointer)
    with started(graph, gate) as running:
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    assert cleaned == ["up"]
    assert run_of(graph).status is RunStatus.CANCELLED
    assert attempts_of(checkpointer) == []


def test_finished_sibling_of_a_stopped_handler_is_kept(checkpointer: Any) -> None:
    """Its result is stored beside the boundary, which stands where it stood."""
    asking, ran = Asking(), threading.Event()
    builder = new_builder()
    add_fan(builder, {"ask": asking, "quick": lambda _state: ran.set()})
    graph = builder.with_parallel().compile().with_checkpointer(checkpointer)
    with started(graph, asking) as running:
        assert ran.wait(PATIENCE)
        graph.cancel("t")
        with pytest.raises(RunCancelledError):
            running.result(PATIENCE)
    run = run_of(graph)
    assert run.status is RunStatus.CANCELLED
    (kept,) = checkpointer.list_results(run)
    assert (kept.node_id, kept.status) == ("quick", "succeeded")


def test_wq_20_driven_child_ends_with_its_parent(checkpointer: Any) -> None:
    """WQ-20: the child's handler is told, its parent goes no further."""
    asking = Asking()
    child = line("tests.child", {"c": asking, "d": note("d")})
    graph = line("tests.parent", {"sub": shared_subgraph(child), "b": note("b")})
    graph = graph.with_checkpointer(checkpointer)
    with started(graph, asking) as running:
        graph.cancel("t", reason="enough")
        with pytest.raises(RunCancelledError, match="enough"):
            running.result(PATIENCE)
    parent = run_of(graph)
    (inner,) = checkpointer.list_children(parent.id)
    assert {parent.status, inner.status} == {RunStatus.CANCELLED}
    assert inner.cancel_reason == "enough"
    assert parent.error is None


def test_wq_20_paused_child_ends_with_its_parent(checkpointer: Any) -> None:
    """WQ-20: its question is closed, and no answer brings it back."""
    child = asking_child("left", "right")
    graph = line("tests.parent", {"sub": shared_subgraph(child), "b": note("b")})
    graph = graph.with_checkpointer(checkpointer)
    paused = graph.run_with_thread("t", {})
    assert graph.cancel("t") is RunStatus.CANCELLED
    (inner,) = checkpointer.list_children(paused.run_id)
    assert inner.status is RunStatus.CANCELLED
    assert checkpointer.list_waits("t", inner.namespace) == []
    assert checkpointer.list_waits("t") == []
    with pytest.raises(ResumeError, match="cancelled"):
        graph.resume("t")


def test_completed_run_is_not_cancelled(checkpointer: Any) -> None:
    graph = line("tests.one", {"a": note("a")}).with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(RunError, match="completed"):
        graph.cancel("t")


def test_thread_without_a_run_has_nothing_to_cancel(checkpointer: Any) -> None:
    graph = line("tests.one", {"a": note("a")}).with_checkpointer(checkpointer)
    with pytest.raises(CheckpointError, match="nowhere"):
        graph.cancel("nowhere")
