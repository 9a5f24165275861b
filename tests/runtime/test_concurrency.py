"""Side by side: how many at once, in which order they fold, what they are told."""

from __future__ import annotations

import asyncio
import threading
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, NodeContext, Send
from tests.runtime.graphs import PATIENCE, Tally, add_fan, go, new_builder, note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAMES = ("a", "b", "c")


class Room:
    """Counts the handlers that are inside at once, and who was told which fork."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.forks: dict[Any, int | None] = {}
        self._lock = threading.Lock()

    def handler(self, work: Callable[[], Any] = lambda: None) -> Any:
        """Make a handler that does `work` inside and logs its node or argument."""

        def handle(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
            who = ctx.node_id if ctx.send_arg is None else ctx.send_arg
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
                self.forks[who] = ctx.fork.index if ctx.fork else None
            work()
            with self._lock:
                self.inside -= 1
            return {"log": [str(who)]}

        return handle


def add_join(builder: Any, sources: Sequence[str]) -> Any:
    """Let all `sources` lead to one node that logs how many it saw."""
    builder.add_node("join", lambda state: {"log": [f"saw {len(state.log)}"]})
    for source in sources:
        builder.add_edge(source, "join")
    return builder


def fan_with_join(handler: Any) -> Any:
    """START to `first`, from there to three nodes at once, and to a join."""
    builder = new_builder().add_node("first", note("first")).add_edge(START, "first")
    for name in NAMES:
        builder.add_node(name, handler).add_edge("first", name)
    return add_join(builder, NAMES)


def fan_of_sends(handler: Any, arguments: Sequence[Any]) -> Any:
    """START to a node that Sends each of `arguments` to `worker`."""
    builder = new_builder().add_edge(START, "split")
    builder.add_node("split", go(*(Send("worker", arg) for arg in arguments)))
    return builder.add_node("worker", handler)


def test_parallel_branches_are_in_flight_together(checkpointer: Any) -> None:
    """Scenario 35: the barrier opens only when all three are inside."""
    barrier = threading.Barrier(3, timeout=PATIENCE)
    room = Room()
    graph = fan_with_join(room.handler(barrier.wait)).with_parallel().compile()
    graph = graph.with_checkpointer(checkpointer)
    execution = graph.run_with_thread("t", {})
    assert execution.state.log == ["first", "a", "b", "c", "saw 4"]
    assert room.forks == {"a": 0, "b": 1, "c": 2}
    assert execution.steps == 3


def test_async_branches_are_in_flight_together(checkpointer: Any) -> None:
    """Scenario 35 with handlers that are coroutines, on one event loop."""
    arrived: list[str] = []
    everyone = asyncio.Event()

    async def meet(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
        arrived.append(ctx.node_id)
        if len(arrived) == len(NAMES):
            everyone.set()
        await asyncio.wait_for(everyone.wait(), PATIENCE)
        return {"log": [ctx.node_id]}

    graph = fan_with_join(meet).with_parallel().compile()
    graph = graph.with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.log[1:4] == ["a", "b", "c"]
    assert sorted(arrived) == ["a", "b", "c"]


def test_sequential_branches_run_one_at_a_time(checkpointer: Any) -> None:
    """Scenario 36: no forks, and the same final state as side by side."""
    room = Room()
    graph = fan_with_join(room.handler()).compile().with_checkpointer(checkpointer)
    execution = graph.run_with_thread("t", {})
    assert execution.state.log == ["first", "a", "b", "c", "saw 4"]
    assert (room.most, set(room.forks.values())) == (1, {None})


def finishing_in(order: Sequence[str]) -> Any:
    """Make a handler that returns only after the one before it in `order` did."""
    ended = {name: threading.Event() for name in order}

    def handle(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
        place = order.index(ctx.node_id)
        assert place == 0 or ended[order[place - 1]].wait(PATIENCE)
        ended[ctx.node_id].set()
        return {"log": [ctx.node_id]}

    return handle


@pytest.mark.parametrize("order", list(permutations(NAMES))[1:])
def test_fold_order_does_not_depend_on_who_is_first(order: tuple[str, ...]) -> None:
    """Scenario 37: five orders of finishing, one order of folding."""
    graph = fan_with_join(finishing_in(order)).with_parallel().compile()
    assert graph.run({}).state.log == ["first", "a", "b", "c", "saw 4"]


def test_concurrency_stays_under_its_cap() -> None:
    """Scenario 38: two meet at the barrier; a third, given time to come, does not."""
    pair = threading.Barrier(2, timeout=PATIENCE)
    third = threading.Event()
    room = Room()

    def meet() -> None:
        pair.wait()
        if room.inside > 2:
            third.set()
        third.wait(0.2)

    graph = fan_of_sends(room.handler(meet), range(4)).compile()
    graph.with_parallel(max_concurrency=2).run({})
    assert room.most == 2


def long_and_short(needed: int) -> Any:
    """Make a handler whose argument "long" returns after `needed` others started."""
    started = threading.Semaphore(0)

    def handle(_state: Tally, ctx: NodeContext) -> dict[str, Any]:
        if ctx.send_arg != "long":
            started.release()
            return {}
        waited = [started.acquire(timeout=PATIENCE) for _ in range(needed)]
        return {"mark": f"started meanwhile: {sum(waited)}"}

    return handle


def test_free_place_is_taken_while_a_long_branch_runs() -> None:
    """Scenario 39: a rolling window, not batches of two."""
    graph = fan_of_sends(long_and_short(3), ["long", "s1", "s2", "s3"]).compile()
    execution = graph.with_parallel(max_concurrency=2).run({})
    assert execution.state.mark == "started meanwhile: 3"


def test_forks_of_sends_pair_with_their_arguments(checkpointer: Any) -> None:
    """Scenario 42: in order, and under a cap too."""
    room = Room()
    graph = fan_of_sends(room.handler(), [7, 5, 8, 6]).compile()
    graph = graph.with_checkpointer(checkpointer).with_parallel(max_concurrency=2)
    assert graph.run_with_thread("t", {}).state.log == ["7", "5", "8", "6"]
    assert room.forks == {7: 0, 5: 1, 8: 2, 6: 3}


UNBOUNDED: list[Callable[[Any], Any]] = [
    lambda b: b.set_defaults(parallel=True, max_concurrency=0).compile(),
    lambda b: b.with_parallel(max_concurrency=0).compile(),
    lambda b: b.compile().with_parallel(max_concurrency=0),
]


@pytest.mark.parametrize("compiled", UNBOUNDED)
def test_cap_of_zero_means_no_cap(compiled: Callable[[Any], Any]) -> None:
    """Scenario 43: all five meet, where the reference crashes."""
    barrier = threading.Barrier(5, timeout=PATIENCE)
    room = Room()
    compiled(fan_of_sends(room.handler(barrier.wait), range(5))).run({})
    assert room.most == 5


def test_one_activation_alone_has_no_fork() -> None:
    """A step with one activation is not concurrent, though the graph is parallel."""
    room = Room()
    builder = add_fan(new_builder(), {"a": room.handler()})
    builder.with_parallel().compile().run({})
    assert room.forks == {"a": None}
