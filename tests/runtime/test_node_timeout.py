"""An attempt past its time-out: who says so, and what it can no longer do.

`test_retry.py` has whether it is tried again. Handlers here really overrun: they wait
for what only the test, or a later attempt, gives.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, NodeContext, RetryPolicy
from stateknot.errors import NodeFailedError, NodeTimeoutError
from tests.runtime.drives import attempts_of, tried
from tests.runtime.graphs import (
    PATIENCE,
    Counted,
    Tally,
    add_fan,
    new_builder,
    note,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.runtime.clock import FakeClock

SHORT = 0.05
TWICE = RetryPolicy(max_attempts=2, retry_on=NodeTimeoutError)


def timed(handler: Any, checkpointer: Any, **options: Any) -> Any:
    """A graph of the one node `work`, with a short time-out."""
    builder = new_builder().add_edge(START, "work")
    builder.add_node("work", handler, timeout=SHORT, **options)
    return builder.compile().with_checkpointer(checkpointer)


def fail(graph: Any) -> NodeFailedError:
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    return failed.value


class Overrun:
    """A handler whose first call blocks until it is let go; later ones log.

    What the first call does once it was let go is `late`, and `ended` that it is done.
    """

    def __init__(self, late: Any = lambda _ctx: None) -> None:
        self.late = late
        self.let_go, self.ended = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.calls += 1
        if self.calls > 1:
            return {"log": ["again"]}
        ctx.emit("progress", 1)
        self.let_go.wait(PATIENCE)
        try:
            self.late(ctx)
        finally:
            self.ended.set()
        return {"mark": "late"}

    def finish(self) -> bool:
        """Let the first call go on, and wait for its end."""
        self.let_go.set()
        return self.ended.wait(PATIENCE)


@pytest.fixture
def overrun() -> Iterator[Overrun]:
    """Give a handler that overruns, and let it go when the test ends."""
    handler = Overrun()
    yield handler
    handler.let_go.set()


def test_overrun_is_recorded_while_it_still_blocks(
    overrun: Overrun, checkpointer: Any
) -> None:
    """EX-12: by the thread that waits for it, long before it ends."""
    assert fail(timed(overrun, checkpointer)).code == "runtime.node_timeout"
    assert not overrun.ended.is_set()
    (attempt,) = attempts_of(checkpointer)
    assert attempt.error["type"] == "NodeTimeoutError"


def test_late_result_is_refused(overrun: Overrun, checkpointer: Any) -> None:
    """EX-12: what it returns after all is not folded, now or by a retry."""
    graph = timed(overrun, checkpointer)
    fail(graph)
    assert overrun.finish()
    assert graph.get_state("t").values == Tally()
    assert graph.retry("t").state == Tally(log=["again"])


def write_late(refused: list[Exception]) -> Any:
    """Make what an overrun attempt tries once it goes on."""

    def late(ctx: NodeContext) -> None:
        refused.append(AssertionError(ctx.attempt, ctx.is_cancelled()))
        for write in (
            lambda: ctx.emit("late", 1),
            lambda: ctx.report_usage(tokens=5),
            ctx.heartbeat,
        ):
            try:
                write()
            except Exception as error:  # noqa: BLE001 - whatever refuses it
                refused.append(error)

    return late


def test_overrun_attempt_cannot_write_into_the_next(
    checkpointer: Any, clock: FakeClock
) -> None:
    """EX-12: it is told to stop, and tells and uses nothing any more."""
    refused: list[Exception] = []
    overrun = Overrun(write_late(refused))

    def work(state: Tally, ctx: NodeContext) -> Any:
        if overrun.calls == 1:
            assert overrun.finish()
        return overrun(state, ctx)

    graph = timed(work, checkpointer)._with(clock=clock).with_node_retry(TWICE)
    assert graph.run_with_thread("t", {}).state == Tally(log=["again"])
    assert refused[0].args == (1, True)
    assert len(refused) == 4
    assert tried(checkpointer) == [("work", 1, "failed"), ("work", 2, "succeeded")]
    assert [attempt.usage for attempt in attempts_of(checkpointer)] == [None, None]
    told = [
        event.data["name"]
        for row in checkpointer.list_journal(checkpointer.find_thread_run("t").id)
        for event in row.events
        if event.kind == "custom"
    ]
    assert told == ["progress"]


def test_error_handler_of_an_overrun_attempt_may_write(
    overrun: Overrun, checkpointer: Any
) -> None:
    """EX-12 with an error handler: it has a context of its own."""

    def handle(_state: Tally, ctx: NodeContext, error: Exception) -> Any:
        ctx.emit("handled", type(error).__name__)
        return {"log": [f"handled on {ctx.attempt}, {ctx.is_cancelled()}"]}

    graph = timed(overrun, checkpointer, on_error=handle)
    assert graph.run_with_thread("t", {}).state.log == ["handled on 1, False"]


def test_usage_before_the_overrun_is_kept_once(checkpointer: Any) -> None:
    """Decision 16: with the attempt that used it, not with its error handler's."""

    def work(_state: Tally, ctx: NodeContext) -> Any:
        ctx.report_usage(tokens=3)
        raise ValueError

    def handle(_state: Tally, ctx: NodeContext, _error: Exception) -> Any:
        ctx.report_usage(tokens=2)

    graph = timed(work, checkpointer, on_error=handle)
    graph.run_with_thread("t", {})
    used = [attempt.usage for attempt in attempts_of(checkpointer)]
    assert used == [{"tokens": 3}, {"tokens": 2}]


def test_sibling_of_an_overrun_is_kept(overrun: Overrun, checkpointer: Any) -> None:
    """EX-12 side by side: the retry runs what timed out, and nothing else."""
    quick = Counted(note("quick"))
    builder = add_fan(new_builder(), {"a": overrun, "b": quick}).with_parallel()
    graph = builder.with_node_timeout(SHORT).compile().with_checkpointer(checkpointer)
    assert fail(graph).node_id == "a"
    assert graph.retry("t").state.log == ["again", "quick"]
    assert quick.calls == 1


def test_async_handler_is_cancelled(checkpointer: Any) -> None:
    """Decision 9: it hears of it where it waits, and can clean up."""
    cleaned: list[str] = []

    async def work(_state: Tally) -> None:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cleaned.append("up")
            raise

    assert fail(timed(work, checkpointer)).code == "runtime.node_timeout"
    assert cleaned == ["up"]


def test_async_handler_that_will_not_stop_is_given_up(checkpointer: Any) -> None:
    """EX-12: it swallows its cancellation, and its late result is refused."""
    stopped = threading.Event()

    async def work(_state: Tally) -> Any:
        last = time.monotonic() + PATIENCE
        while not stopped.is_set() and time.monotonic() < last:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return {"mark": "late"}

    graph = timed(work, checkpointer)
    assert fail(graph).code == "runtime.node_timeout"
    stopped.set()
    assert graph.get_state("t").values == Tally()


@pytest.mark.timeout(PATIENCE)
def test_thread_of_an_async_handler_does_not_hold_the_drive(
    overrun: Overrun, checkpointer: Any
) -> None:
    """EX-12: cancelling cannot stop a thread, and the caller does not wait for it."""

    async def work(_state: Tally) -> None:
        await asyncio.to_thread(overrun.let_go.wait, 2 * PATIENCE)

    assert fail(timed(work, checkpointer)).code == "runtime.node_timeout"
    assert not overrun.let_go.is_set()
