"""`ctx.idempotency_key`: what a handler gives to a service that must not act twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    START,
    NodeContext,
    ResumeTarget,
    RetryableError,
    RetryPolicy,
    Send,
)
from stateknot.errors import NodeFailedError
from tests.runtime.graphs import add_line, go, new_builder
from tests.runtime.points import Crash, pointed

if TYPE_CHECKING:
    from tests.runtime.clock import FakeClock

ONCE_MORE = RetryPolicy(max_attempts=2)


class Service:
    """A payment service: it acts once per key. `keys` are those it was asked with."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.keys: list[str] = []

    def pay(self, _state: Any, ctx: NodeContext) -> None:
        """Pay, and fail afterwards as long as there are failures left."""
        self.keys.append(ctx.idempotency_key)
        if len(self.keys) <= self.failures:
            raise RetryableError("the answer was lost")

    @property
    def payments(self) -> int:
        return len(set(self.keys))


def paying(service: Service, checkpointer: Any, clock: FakeClock) -> Any:
    """Node a, then the node that pays."""
    builder = add_line(new_builder(), "a").add_node("pay", service.pay)
    graph = builder.add_edge("a", "pay").compile().with_checkpointer(checkpointer)
    return graph._with(clock=clock)


def test_retries_of_any_kind_pay_once(checkpointer: Any, clock: FakeClock) -> None:
    """EX-15: two attempts by the policy, one by the operator, one key."""
    service = Service(failures=2)
    graph = paying(service, checkpointer, clock).with_node_retry(ONCE_MORE)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.retry("t")
    assert (len(service.keys), service.payments) == (3, 1)


def test_fork_pays_again(checkpointer: Any, clock: FakeClock) -> None:
    """EX-15: it is another story, told from before the payment."""
    service = Service()
    graph = paying(service, checkpointer, clock)
    graph.run_with_thread("t", {})
    before = graph.get_state_history("t")[1].config["checkpoint_id"]
    graph.fork_state("t", "u", before)
    graph.resume("u")
    assert service.payments == 2


def test_branch_pays_again(checkpointer: Any, clock: FakeClock) -> None:
    """EX-15 with decision 15: so is a resume from an older checkpoint."""
    service = Service()
    graph = paying(service, checkpointer, clock)
    graph.run_with_thread("t", {})
    before = graph.get_state_history("t")[1].config["checkpoint_id"]
    graph.resume_from("t", ResumeTarget.checkpoint(before))
    assert service.payments == 2


@pytest.mark.parametrize(
    ("mode", "is_edited"),
    [
        ("sync", False),
        ("sync", True),
        ("async", False),
        ("async", True),
        ("exit", False),
    ],
)
def test_crash_behind_the_payment_pays_once(
    checkpointer: Any, clock: FakeClock, mode: str, is_edited: bool
) -> None:
    """EX-15: nothing was stored of it, and an edit meanwhile changes nothing."""

    def crash(_times: int) -> None:
        raise Crash

    service = Service()
    store = pointed(checkpointer)
    graph = paying(service, store, clock).with_durability(mode)
    store.at("before commit", lambda times: None if times == 1 else crash(times))
    if mode == "exit":
        store.at("before commit", crash)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    store.clear()
    if is_edited:
        graph.update_state("t", {"mark": "edited"})
    graph.resume("t")
    assert (len(service.keys), service.payments) == (2, 1)


def test_items_and_steps_pay_each(checkpointer: Any, clock: FakeClock) -> None:
    """EX-15: three items of a fan-out, and the node once more in the next step."""
    service = Service()
    builder = new_builder().add_edge(START, "split").add_node("pay", service.pay)
    builder.add_node("split", go(*(Send("pay", n) for n in (1, 1, 2))))
    builder.add_node("more", go("pay")).add_edge("pay", "more")
    builder.with_recursion_limit(4)
    graph = builder.compile().with_checkpointer(checkpointer)._with(clock=clock)
    with pytest.raises(Exception, match="limit"):
        graph.run_with_thread("t", {})
    assert (len(service.keys), service.payments) == (4, 4)
