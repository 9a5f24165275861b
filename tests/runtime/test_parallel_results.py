"""Side by side: what a crash may undo, who writes what, and in which order it folds.

`test_kept_results.py` has what failures and questions leave behind.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    RetryableError,
    RetryPolicy,
    Send,
    add,
    append,
    last_value,
)
from stateknot.errors import (
    InvalidConcurrentUpdateError,
    NodeFailedError,
    RevisionMismatchError,
)
from tests.runtime.drives import tried
from tests.runtime.graphs import (
    PATIENCE,
    Counted,
    Flaky,
    Tally,
    add_fan,
    add_line,
    go,
    new_builder,
    note,
    sources,
)
from tests.runtime.points import Crash, pointed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot import CompiledGraph, NodeContext
    from tests.runtime.clock import FakeClock


def crash(_times: int) -> None:
    raise Crash


def end(graph: CompiledGraph) -> None:
    """Run thread "t", at which the process ends."""
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})


def chained(graph: CompiledGraph) -> bool:
    """Whether the thread's records are one unbroken chain with rising steps."""
    history = graph.get_state_history("t")
    ids = [snapshot.config["checkpoint_id"] for snapshot in history]
    parents = [s.parent_config["checkpoint_id"] for s in history if s.parent_config]
    steps = [snapshot.metadata["step"] for snapshot in history]
    return parents == ids[1:] and steps == sorted(set(steps), reverse=True)


@pytest.mark.parametrize("point", ["before commit", "after commit"])
def test_crash_at_the_boundary_runs_its_node_again(
    checkpointer: Any, point: str
) -> None:
    """EX-01 b: result and record are one transaction, so both are gone, and B is not.

    One record per step, and no gap in the chain.
    """
    first, second = Counted(note("a")), Counted(note("b"))
    builder = add_fan(new_builder(), {"a": first}).add_node("b", second)
    store = pointed(checkpointer).at(point, crash)
    graph = builder.add_edge("a", "b").compile().with_checkpointer(store)
    end(graph)
    assert tried(store) == []
    store.clear()
    assert graph.resume("t").state.log == ["a", "b"]
    assert (first.calls, second.calls) == (2, 1)
    assert chained(graph)


def test_crash_behind_the_boundary_runs_nothing_again(checkpointer: Any) -> None:
    """EX-01: once A's record stands, a crash at B's is B's alone."""
    first, second = Counted(note("a")), Counted(note("b"))
    builder = add_fan(new_builder(), {"a": first}).add_node("b", second)
    store = pointed(checkpointer)
    store.at("before commit", lambda times: crash(times) if times == 2 else None)
    graph = builder.add_edge("a", "b").compile().with_checkpointer(store)
    end(graph)
    assert graph.resume("t").state.log == ["a", "b"]
    assert (first.calls, second.calls) == (1, 2)
    assert chained(graph)


class Pair:
    """Branches a and b with a join; b ends only once a's result is stored."""

    def __init__(self, checkpointer: Any) -> None:
        self.store = pointed(checkpointer)
        self.stored = threading.Event()
        self.first, self.join = Counted(note("a")), Counted(note("join"))
        self.second = Counted(self._second)
        self.store.at("before record", lambda _times: self.stored.set())
        builder = add_fan(new_builder(), {"a": self.first, "b": self.second})
        builder.add_node("join", self.join).add_waiting_edge(["a", "b"], "join")
        graph = builder.with_parallel().compile()
        self.graph = graph.with_checkpointer(self.store)

    def _second(self, _state: Tally) -> Any:
        assert self.stored.wait(PATIENCE)
        return {"log": ["b"]}

    @property
    def calls(self) -> tuple[int, int, int]:
        return self.first.calls, self.second.calls, self.join.calls


@pytest.mark.parametrize("point", ["before commit", "after commit"])
def test_stored_result_outlives_a_crash(checkpointer: Any, point: str) -> None:
    """EX-01 a, scenario 107: only b, whose result was not stored, runs again."""
    pair = Pair(checkpointer)
    pair.store.at(point, crash)
    end(pair.graph)
    assert pair.graph.get_state("t").values == Tally()
    pair.store.clear()
    assert pair.graph.resume("t").state.log == ["a", "b", "join"]
    assert pair.calls == (1, 2, 1)
    assert chained(pair.graph)


def test_crash_of_a_running_branch_leaves_the_join_waiting(checkpointer: Any) -> None:
    """PF-04: b was in flight, not skipped; it runs once more, and the join behind."""
    pair = Pair(checkpointer)
    ended: list[bool] = []
    work = pair.second.handler

    def dies(state: Tally) -> Any:
        result = work(state)
        if not ended:
            ended.append(True)
            raise Crash
        return result

    pair.second.handler = dies
    end(pair.graph)
    head = pair.graph.get_state("t")
    assert (head.next_nodes, head.values) == (["a", "b"], Tally())
    assert pair.graph.resume("t").state.log == ["a", "b", "join"]
    assert pair.calls == (1, 2, 1)


def test_stored_result_outlives_a_manual_write(checkpointer: Any) -> None:
    """Decisions 2, 5: after a crash and an edit it is reused all the same."""
    pair = Pair(checkpointer)
    pair.store.at("before commit", crash)
    end(pair.graph)
    pair.store.clear()
    pair.graph.update_state("t", {"mark": "edited"})
    done = pair.graph.resume("t")
    assert (done.state.log, done.state.mark) == (["a", "b", "join"], "edited")
    assert pair.calls == (1, 2, 1)


def test_node_that_is_gone_is_refused_before_anything_runs(checkpointer: Any) -> None:
    """Replaces scenario 108 (section 4): a run is pinned to its revision."""
    first = Counted(Flaky("a"))
    builder = add_fan(new_builder(), {"a": first, "b": note("b")})
    with pytest.raises(NodeFailedError):
        builder.compile().with_checkpointer(checkpointer).run_with_thread("t", {})
    other = add_line(new_builder(), "c").compile().with_checkpointer(checkpointer)
    with pytest.raises(RevisionMismatchError):
        other.resume("t")
    assert sources(other, "t") == ["input", "failure"]
    assert first.calls == 1


def fan_of(handler: Any, items: Sequence[Any]) -> Any:
    """A node that Sends each item to `worker`."""
    builder = new_builder().add_edge(START, "split").add_node("worker", handler)
    return builder.add_node("split", go(*(Send("worker", item) for item in items)))


@pytest.mark.parametrize("most", [1, 2])
def test_no_branch_is_lost_under_a_cap(checkpointer: Any, most: int) -> None:
    """PF-09: six items, six results, and never more than the cap at once."""
    inside: list[int] = []
    seen: list[int] = []

    def work(_state: Tally, ctx: NodeContext) -> Any:
        inside.append(ctx.send_arg)
        seen.append(len(inside))
        threading.Event().wait(0.01)  # time for one too many to come in
        inside.remove(ctx.send_arg)
        return {"total": ctx.send_arg}

    graph = fan_of(work, range(1, 7)).compile().with_checkpointer(checkpointer)
    graph = graph.with_parallel(max_concurrency=most)
    assert graph.run_with_thread("t", {}).state.total == 21
    assert (len(seen), max(seen) <= most) == (6, True)


class Shuffled:
    """Workers that end in a given order; one of them fails the first time."""

    def __init__(self, order: Sequence[int], flaky: int) -> None:
        self.order, self.flaky = list(order), flaky
        self.ended = {item: threading.Event() for item in order}
        self.failed = threading.Event()

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        item = ctx.send_arg
        if item == self.flaky and not self.failed.is_set():
            self.failed.set()
            raise RetryableError("first time")
        place = self.order.index(item)
        assert place == 0 or self.ended[self.order[place - 1]].wait(PATIENCE)
        self.ended[item].set()
        return {"log": [str(item)]}


def test_result_order_is_that_of_the_items(clock: FakeClock, checkpointer: Any) -> None:
    """PF-10: twenty runs, each ending in another order and with one retry."""
    items = [3, 1, 2]
    chance = random.Random(10)  # noqa: S311 - a seed, so that a failure comes again
    for number in range(20):
        order = chance.sample(items, len(items))
        worker = Shuffled(order, flaky=chance.choice(items))
        graph = fan_of(worker, items).with_parallel().compile()
        graph = graph.with_checkpointer(checkpointer)._with(clock=clock)
        graph = graph.with_node_retry(RetryPolicy())
        log = graph.run_with_thread(f"t{number}", {}).state.log
        assert (log, order) == (["3", "1", "2"], order)


class Desk(BaseModel):
    """`x` takes one writer a superstep; the others are plain or accumulate."""

    x: Annotated[int, last_value] = 0
    a: int = 0
    b: int = 0
    total: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []


@pytest.mark.parametrize("is_parallel", [False, True])
def test_two_writers_of_one_value_are_both_named(
    checkpointer: Any, is_parallel: bool
) -> None:
    """PF-08: the failed boundary names the field and both nodes; nothing is stored."""
    nodes = {"A": lambda _s: {"x": 1}, "B": lambda _s: {"x": 2}}
    graph = add_fan(new_builder(state=Desk), nodes).compile()
    graph = graph.with_checkpointer(checkpointer)
    graph = graph.with_parallel() if is_parallel else graph
    with pytest.raises(NodeFailedError, match=r"'x'.*'A'.*'B'") as failed:
        graph.run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, InvalidConcurrentUpdateError)
    head = graph.get_state("t")
    assert (head.values, head.next_nodes) == (Desk(), ["A", "B"])


def change_a(state: Desk) -> Desk:
    state.a = 1
    state.log.append("a")
    return state


def change_b(state: Desk) -> Command:
    state.b = 2
    state.total += 5
    state.log.append("b")
    return Command(update=state)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_node_that_gives_its_whole_state_back_undoes_nothing(
    checkpointer: Any, is_parallel: bool
) -> None:
    """PF-08: what it left alone is no update, so a sibling's change stands."""
    graph = add_fan(new_builder(state=Desk), {"A": change_a, "B": change_b}).compile()
    graph = graph.with_checkpointer(checkpointer)
    graph = graph.with_parallel() if is_parallel else graph
    begun = {"x": 7, "total": 1, "log": ["begun"]}
    state = graph.run_with_thread("t", begun).state
    assert state == Desk(x=7, a=1, b=2, total=6, log=["begun", "a", "b"])
