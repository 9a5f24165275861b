"""Crashes at named points: what stands, and what runs again."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import START, GraphBuilder, RetryPolicy, RunStatus, Timer, append
from stateknot.errors import RecursionLimitError, RunError
from stateknot.testing import CRASH_POINTS, Crash, InMemory


class Log(BaseModel):
    log: Annotated[list[str], append] = []


class Shop:
    """A graph that reaches every point: two retries (one short, one long), a timer."""

    def __init__(self, limit: int = 50) -> None:
        self.calls: list[str] = []
        builder = GraphBuilder("tests.shop", state=Log)
        builder.add_node("first", self.first, retry=RetryPolicy(initial_interval=0.5))
        long = RetryPolicy(initial_interval=3600, maximum_interval=3600)
        builder.add_node("second", self.second, retry=long)
        builder.add_node("nap", lambda _: Timer(timedelta(days=1)))
        builder.add_node("last", self.last)
        builder.add_sequence(START, "first", "second", "nap", "last")
        self.graph = builder.with_recursion_limit(limit).compile()

    def _call(self, name: str, failures: int = 0) -> dict[str, Any]:
        self.calls.append(name)
        if self.calls.count(name) <= failures:
            raise ConnectionError(name)
        return {"log": [name]}

    def first(self, _state: Log) -> dict[str, Any]:
        return self._call("first", failures=1)

    def second(self, _state: Log) -> dict[str, Any]:
        return self._call("second", failures=1)

    def last(self, _state: Log) -> dict[str, Any]:
        return self._call("last")


# How often `first` and `second` are called in all: one failure each belongs to them, a
# crash adds what was not stored. The two points of a limit come with a limit of 2.
CALLS = {
    "before admit": None,
    "after admit": (2, 2),
    "before commit": (3, 2),
    "after commit": (2, 2),
    "before record": (2, 2),
    "after record": (2, 2),
    "before defer": (2, 2),
    "after defer": (2, 2),
    "before finish": None,
    "after finish": None,
}


def crash(play: InMemory) -> None:
    with pytest.raises(Crash):
        play.run()


def test_every_point_has_a_test() -> None:
    """A point that is added to the table must be added here."""
    assert list(CALLS) == list(CRASH_POINTS)


@pytest.mark.parametrize("point", [p for p, calls in CALLS.items() if calls])
def test_run_comes_to_its_end_behind_a_crash(point: str) -> None:
    """Nothing that was stored is lost, nothing else is kept."""
    shop = Shop()
    play = InMemory(shop.graph, crash_at=point)
    crash(play)
    done = play.recover()
    assert (done.status, done.state.log) == (
        RunStatus.COMPLETED,
        ["first", "second", "last"],
    )
    counts = (shop.calls.count("first"), shop.calls.count("second"))
    assert counts == CALLS[point]
    assert shop.calls.count("last") == 1


def test_crash_before_the_admission_leaves_nothing() -> None:
    play = InMemory(Shop().graph, crash_at="before admit")
    crash(play)
    assert play.store.find_thread_run("test") is None
    with pytest.raises(RunError, match="run again"):
        play.recover()
    assert play.run().status is RunStatus.COMPLETED


def test_crash_before_a_limit_is_told_meets_it_again() -> None:
    play = InMemory(Shop(limit=2).graph, crash_at="before finish")
    crash(play)
    with pytest.raises(RecursionLimitError):
        play.recover()


def test_crash_behind_a_limit_leaves_the_run_failed() -> None:
    play = InMemory(Shop(limit=2).graph, crash_at="after finish")
    crash(play)
    assert play.recover().status is RunStatus.FAILED


@pytest.mark.parametrize("on", [1, 2, 3, 4])
def test_crash_behind_any_boundary_repeats_nothing(on: int) -> None:
    """The last of them is that of a completed run."""
    shop = Shop()
    play = InMemory(shop.graph, crash_at="after commit", crash_on=on)
    crash(play)
    assert play.recover().state.log == ["first", "second", "last"]
    assert sorted(shop.calls) == ["first", "first", "last", "second", "second"]


def test_dead_process_writes_nothing_more() -> None:
    """Its lease is not given back, and its siblings' results are lost."""
    builder = GraphBuilder("tests.wide", state=Log)
    calls: list[str] = []

    def work(name: str) -> Any:
        def handler(_state: Log) -> dict[str, Any]:
            calls.append(name)
            return {"log": [name]}

        return handler

    for name in ("a", "b"):
        builder.add_node(name, work(name)).add_edge(START, name)
    play = InMemory(builder.with_parallel().compile(), crash_at="before commit")
    crash(play)
    run = play.store.find_thread_run("test")
    assert run.status is RunStatus.RUNNING
    assert play.store.last_sequence("test") == 0
    assert play.recover().state.log == ["a", "b"]
    assert sorted(calls) == ["a", "a", "b", "b"]


def test_points_that_are_not_reached_do_not_crash() -> None:
    play = InMemory(Shop().graph, crash_at="before finish")
    assert play.run().status is RunStatus.COMPLETED
    assert play.store.reached["before finish"] == 0


def test_unknown_point_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="before commit"):
        InMemory(Shop().graph, crash_at="half way")
