"""Retries and time-outs of one node: how often, when, and after which errors."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, NodeError, RetryableError, RetryPolicy
from stateknot.errors import NodeFailedError, NodeTimeoutError
from tests.runtime.graphs import PATIENCE, Flaky, Tally, add_fan, new_builder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stateknot.runtime.events import CollectingSink
    from tests.runtime.clock import FakeClock

SHORT = 0.05


def one_node(handler: Any, clock: FakeClock, policy: RetryPolicy | None = None) -> Any:
    """A graph of one node, whose retries wait on `clock`."""
    graph = add_fan(new_builder(), {"work": handler}).compile()
    return graph._with(clock=clock).with_node_retry(policy)


def fail(graph: Any) -> NodeFailedError:
    """Run a graph that must fail; give the error."""
    with pytest.raises(NodeFailedError) as failed:
        graph.run({})
    return failed.value


def test_node_succeeds_within_its_attempts(
    clock: FakeClock, sink: CollectingSink
) -> None:
    """Scenario 44: two failures, four attempts allowed."""
    work = Flaky("work", failures=2, error=RetryableError)
    graph = one_node(work, clock, RetryPolicy()).with_event_sink(sink)
    assert graph.run({}).state.log == ["work"]
    retries = [e for e in sink.events if e.kind == "node.retry_scheduled"]
    assert [event.data["attempt"] for event in retries] == [1, 2]
    assert work.calls == 3


def test_operator_retry_has_attempts_of_its_own(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Scenario 45: three failures, two attempts a time."""
    work = Flaky("work", failures=3, error=RetryableError)
    graph = one_node(work, clock, RetryPolicy(max_attempts=2))
    graph = graph.with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    assert (work.calls, failed.value.attempts) == (2, 2)
    head = graph.get_state("t")
    assert (head.metadata["step"], head.next_nodes) == (1, ["work"])
    assert graph.retry("t").state.log == ["work"]
    assert work.calls == 4


def test_node_without_a_policy_is_tried_once(checkpointer: Any) -> None:
    """Scenario 46: then the operator's retry completes it."""
    work = Flaky("work", error=RetryableError)
    graph = add_fan(new_builder(), {"work": work}).compile()
    graph = graph.with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert work.calls == 1
    assert graph.retry("t").state.log == ["work"]


def test_first_wait_is_the_initial_interval(clock: FakeClock) -> None:
    """Replaces scenario 58 (decision 9): attempts start at 0, 0.2, 0.6 and 1.4 s."""
    started = []
    work = Flaky("work", failures=3, error=RetryableError)

    def handler(state: Tally) -> Any:
        started.append(clock.elapsed)
        return work(state)

    one_node(handler, clock, RetryPolicy()).run({})
    assert started == pytest.approx([0, 0.2, 0.6, 1.4])


def test_wait_never_passes_its_maximum(clock: FakeClock) -> None:
    """Decision 9: growing stops at `maximum_interval`."""
    policy = RetryPolicy(initial_interval=10, backoff=4, maximum_interval=25)
    one_node(Flaky("work", 3, RetryableError), clock, policy).run({})
    assert clock.sleeps == [10, 25, 25]


def test_server_is_not_asked_before_it_said(clock: FakeClock) -> None:
    """Replaces scenario 58 (decision 9): Retry-After is honoured."""

    def busy(text: str) -> RetryableError:
        return RetryableError(text, retry_after=5)

    one_node(Flaky("work", 1, busy), clock, RetryPolicy()).run({})
    assert clock.sleeps == [5]


@pytest.mark.parametrize(
    ("retry_on", "error", "calls"),
    [
        (lambda error: "call 1" in str(error), ValueError, 2),
        (ValueError, ValueError, 2),
        ((KeyError, ValueError), ValueError, 2),
        (lambda _error: False, RetryableError, 1),
        (KeyError, RetryableError, 1),
    ],
)
def test_predicate_of_the_policy_decides(
    retry_on: Any, error: Any, calls: int, clock: FakeClock
) -> None:
    """Replaces scenario 59 (decision 9): it adds kinds of errors and takes away."""
    work = Flaky("work", failures=9, error=error)
    policy = RetryPolicy(max_attempts=2, retry_on=retry_on)
    assert fail(one_node(work, clock, policy)).attempts == calls
    assert work.calls == calls


def http_error(status: int) -> Any:
    class HttpError(Exception):
        status_code = status

    return HttpError


class OperationalError(Exception):
    """Named like what every database driver raises when the database is away."""


RETRIED = [RetryableError, ConnectionResetError, TimeoutError, OperationalError]
RETRIED += [http_error(status) for status in (408, 425, 429, 500, 503)]
RETRIED += [lambda text: NodeError("shop.busy", text, retryable=True)]
NOT_RETRIED = [ValueError, TypeError, KeyError, http_error(404), http_error(409)]
NOT_RETRIED += [lambda text: NodeError("shop.closed", text)]


@pytest.mark.parametrize(
    ("error", "calls"), [(e, 2) for e in RETRIED] + [(e, 1) for e in NOT_RETRIED]
)
def test_faults_of_the_world_are_retried(
    error: Any, calls: int, clock: FakeClock
) -> None:
    """Decision 9: what is retried where a policy says nothing about kinds."""
    work = Flaky("work", failures=9, error=error)
    fail(one_node(work, clock, RetryPolicy(max_attempts=2)))
    assert work.calls == calls


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Give what handlers that hang wait for; it comes when the test ends."""
    event = threading.Event()
    yield event
    event.set()


def hanging(released: threading.Event, calls: list[str]) -> Any:
    def handler(_state: Tally) -> None:
        calls.append("sync")
        released.wait(PATIENCE)

    return handler


def hanging_async(calls: list[str]) -> Any:
    async def handler(_state: Tally) -> None:
        calls.append("async")
        await asyncio.sleep(PATIENCE)

    return handler


@pytest.fixture(params=["sync", "async"])
def slow(request: pytest.FixtureRequest, released: threading.Event) -> Any:
    """Give a handler that outlives any time-out, and the list of its calls."""
    calls: list[str] = []
    if request.param == "sync":
        return hanging(released, calls), calls
    return hanging_async(calls), calls


def timed(slow: Any, clock: FakeClock, policy: RetryPolicy | None) -> Any:
    """A graph of one node with a time-out of its own."""
    builder = new_builder().add_edge(START, "work")
    builder.add_node("work", slow, timeout=SHORT)
    return builder.compile()._with(clock=clock).with_node_retry(policy)


def test_node_past_its_timeout_fails(slow: Any, clock: FakeClock) -> None:
    """Scenario 56."""
    error = fail(timed(slow[0], clock, None))
    assert isinstance(error.__cause__, NodeTimeoutError)
    assert error.code == "runtime.node_timeout"


def test_timeout_is_not_retried(slow: Any, clock: FakeClock) -> None:
    """Scenario 57: exactly one attempt, although there is a policy."""
    assert fail(timed(slow[0], clock, RetryPolicy())).attempts == 1
    assert len(slow[1]) == 1


def test_timeout_is_retried_where_the_policy_names_it(
    slow: Any, clock: FakeClock
) -> None:
    """Scenario 57 with decision 9: `retry_on=NodeTimeoutError`."""
    policy = RetryPolicy(max_attempts=2, retry_on=NodeTimeoutError)
    assert fail(timed(slow[0], clock, policy)).attempts == 2
    assert len(slow[1]) == 2


def test_timeout_of_the_handlers_own_is_retried(clock: FakeClock) -> None:
    """Decision 9: a TimeoutError that the handler raised is a fault of the world."""
    work = Flaky("work", failures=1, error=TimeoutError)
    graph = timed(work, clock, RetryPolicy())
    assert graph.run({}).state.log == ["work"]


def test_timeout_for_all_nodes_is_a_default() -> None:
    """Scenario 56 through `with_node_timeout`, for nodes without one of their own."""
    builder = add_fan(new_builder(), {"work": hanging_async([])})
    error = fail(builder.with_node_timeout(SHORT).compile())
    assert isinstance(error.__cause__, NodeTimeoutError)
