"""What `on_error=` makes of a failure: a result of the same superstep, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    START,
    Command,
    Interrupt,
    NodeContext,
    RetryableError,
    RetryPolicy,
    RunStatus,
)
from stateknot.errors import NodeFailedError
from tests.runtime.drives import admit, drive, make_due, tried
from tests.runtime.graphs import Counted, Flaky, Tally, add_fan, new_builder, note
from tests.runtime.points import Crash, pointed

if TYPE_CHECKING:
    from tests.runtime.clock import FakeClock

MODES = pytest.mark.parametrize("is_parallel", [False, True])


class Handler:
    """An error handler that logs what it was called for; `gives` is its result."""

    def __init__(self, gives: Any = None) -> None:
        self.gives = gives
        self.calls = 0

    def __call__(self, _state: Tally, _ctx: NodeContext, error: Exception) -> Any:
        self.calls += 1
        return self.gives or {"log": [f"handled {type(error).__name__}"]}


def boom(_state: Tally) -> Any:
    raise ValueError("boom")


def with_boom(
    handler: Any, checkpointer: Any, beside: Any = None, **options: Any
) -> Any:
    """A graph whose node `boom` fails and is handled, maybe with nodes beside it."""
    builder = add_fan(new_builder(), beside or {})
    builder.add_node("boom", options.pop("node", boom), on_error=handler, **options)
    return builder.add_edge(START, "boom").compile().with_checkpointer(checkpointer)


def test_handled_error_alone_is_no_failure(checkpointer: Any) -> None:
    """EX-07: the step succeeds with the handler's result."""
    handler = Handler()
    done = with_boom(handler, checkpointer).run_with_thread("t", {})
    assert (done.status, done.state.log) == (
        RunStatus.COMPLETED,
        ["handled ValueError"],
    )
    assert handler.calls == 1


@MODES
def test_handled_error_beside_others_is_no_failure(
    checkpointer: Any, is_parallel: bool
) -> None:
    """EX-07: both results, the same outcome as alone."""
    handler = Handler()
    beside = {"ok": note("ok"), "a": note("a")}
    graph = with_boom(handler, checkpointer, beside)
    graph = graph.with_parallel() if is_parallel else graph
    done = graph.run_with_thread("t", {})
    assert done.state.log == ["a", "handled ValueError", "ok"]
    assert (handler.calls, done.steps) == (1, 1)


def test_failed_and_handled_attempts_are_both_kept(checkpointer: Any) -> None:
    """EX-07 with decision 18: the failure stays readable beside its handling."""
    with_boom(Handler(), checkpointer).run_with_thread("t", {})
    assert tried(checkpointer) == [("boom", 1, "failed"), ("boom", 2, "succeeded")]


def test_handler_comes_after_the_last_attempt(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 9: retries first, then the handler, once."""
    work, handler = Flaky("boom", 9, RetryableError), Handler()
    graph = with_boom(handler, checkpointer, node=work, retry=RetryPolicy(3))
    done = graph._with(clock=clock).run_with_thread("t", {})
    assert done.state.log == ["handled RetryableError"]
    assert (work.calls, handler.calls) == (3, 1)


def test_handler_is_not_called_for_what_a_retry_mended(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Decision 9."""
    work, handler = Flaky("boom", 1, RetryableError), Handler()
    graph = with_boom(handler, checkpointer, node=work, retry=RetryPolicy())
    assert graph._with(clock=clock).run_with_thread("t", {}).state.log == ["boom"]
    assert handler.calls == 0


async def in_the_background(_state: Tally, ctx: NodeContext, error: Exception) -> Any:
    return Command(update={"log": [f"{ctx.node_id}: {error}"]}, goto="mend")


def test_handler_may_wait_and_choose_where_to_go(checkpointer: Any) -> None:
    """EX-07: a coroutine, and a goto in place of the node's own edges."""
    builder = add_fan(new_builder(), {}).add_node("mend", note("mend"))
    builder.add_command_node(
        "boom", boom, destinations=["mend"], on_error=in_the_background
    )
    graph = builder.add_edge(START, "boom").compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["boom: boom", "mend"]


def test_handler_may_ask(checkpointer: Any) -> None:
    """EX-07 with decision 3: the node runs again, with the answer."""

    def work(_state: Tally, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            raise ValueError("what now?")
        return {"log": [f"told {ctx.resume}"]}

    graph = with_boom(Handler(Interrupt("what now?")), checkpointer, node=work)
    assert graph.run_with_thread("t", {}).is_interrupted
    done = graph.resume("t", Command(resume="go on"))
    assert done.state.log == ["told go on"]


def test_handler_that_fails_leaves_the_failure_it_was_called_for(
    checkpointer: Any,
) -> None:
    """EX-07 with decision 6: neither masks the other."""

    def handler(_state: Tally, _ctx: NodeContext, _error: Exception) -> Any:
        raise KeyError("handler")

    graph = with_boom(handler, checkpointer)
    with pytest.raises(NodeFailedError, match="ValueError: boom") as failed:
        graph.run_with_thread("t", {})
    assert "KeyError('handler')" in "".join(failed.value.__cause__.__notes__)
    error = graph.get_state("t").metadata["error"]
    assert error["type"] == "ValueError"
    assert "KeyError('handler')" in error["traceback"]


@MODES
def test_handled_result_is_kept_behind_a_failure(
    checkpointer: Any, is_parallel: bool
) -> None:
    """EX-07 with decision 2: side by side neither node nor handler runs again."""
    handler, work = Handler(), Counted(boom)
    graph = with_boom(handler, checkpointer, {"a": Flaky("a")}, node=work)
    graph = graph.with_parallel() if is_parallel else graph
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert handler.calls == is_parallel
    assert graph.retry("t").state.log == ["a", "handled ValueError"]
    assert (handler.calls, work.calls) == (1, 1)


def test_handled_result_is_undone_by_a_crash_only_with_its_step(
    checkpointer: Any,
) -> None:
    """EX-07: it is part of the durable step, so both are there or none."""

    def crash(_times: int) -> None:
        raise Crash

    store = pointed(checkpointer).at("after commit", crash)
    handler = Handler()
    graph = with_boom(handler, store)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    assert graph.get_state("t").values == Tally()
    store.clear()
    assert graph.resume("t").state.log == ["handled ValueError"]
    assert handler.calls == 2


@pytest.mark.usefixtures("empty_registry")
def test_handler_is_not_called_while_a_retry_is_put_off(checkpointer: Any) -> None:
    """EX-07 on a worker: the failure is not the last one yet."""
    handler, policy = Handler(), RetryPolicy(2, initial_interval=60)
    work = Flaky("boom", 9, RetryableError)
    graph = with_boom(handler, checkpointer, node=work, retry=policy)
    admit(graph)
    assert (drive(checkpointer).status, handler.calls) == (RunStatus.WAITING, 0)
    make_due(checkpointer)
    assert (drive(checkpointer).status, handler.calls) == (RunStatus.COMPLETED, 1)
