"""Joins and reliefs: decision 7, scenarios 109 to 118 at the pure level."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.blueprint import Blueprint
from stateknot.kernel.commands import Send
from stateknot.kernel.records import JoinState
from stateknot.kernel.routing import plan_routes
from stateknot.kernel.selection import RoutePlan
from tests.kernel.blueprint_samples import (
    NO_JOINS,
    act,
    builder_of,
    diamond,
    done,
    gone,
)
from tests.kernel.state_samples import Tally


def plan(
    blueprint: Blueprint,
    *completed: Any,
    remaining: str = "",
    joins: JoinState = NO_JOINS,
) -> RoutePlan:
    pending = [act(word) for word in remaining.split()]
    return plan_routes(
        blueprint, Tally(), done(*completed), remaining=pending, joins=joins, step=1
    )


def names(routes: RoutePlan) -> list[str]:
    return [activation.node for activation in routes.successors]


def arrived(**joins: str) -> JoinState:
    return JoinState(arrivals={join: tuple(n.split()) for join, n in joins.items()})


def test_join_fires_when_all_arrive_together() -> None:
    routes = plan(diamond(), "b", "c")
    assert names(routes) == ["d"]
    assert routes.joins == NO_JOINS


def test_join_waits_for_a_later_superstep() -> None:
    """Scenarios 109 and 110: arrivals are kept between boundaries."""
    first = plan(diamond(), "b", remaining="c")
    assert (names(first), first.joins) == ([], arrived(d="b"))
    second = plan(diamond(), "c", joins=first.joins)
    assert (names(second), second.joins) == (["d"], NO_JOINS)


def test_join_counts_several_activations_of_a_predecessor_once() -> None:
    """Scenario 115."""
    assert names(plan(diamond(), "b", "c", "b")) == ["d"]


def test_join_waits_while_a_predecessor_is_pending() -> None:
    """D11: it counts activations, not names."""
    held = plan(diamond(), "b", "c", remaining="b")
    assert (names(held), held.joins) == ([], arrived(d="b c"))
    assert names(plan(diamond(), "b", joins=held.joins)) == ["d"]


def test_join_waits_for_a_predecessor_that_is_due_again() -> None:
    blueprint = diamond()
    routes = plan(blueprint, "a", joins=arrived(d="b c"))
    assert (names(routes), routes.joins) == (["b", "c"], arrived(d="b c"))


@given(st.permutations(["w", "v", "w"]), st.permutations(["w", "v"]))
def test_late_arrival_of_one_pass_does_not_count_in_the_next(
    first: list[str], second: list[str]
) -> None:
    """Scenario 118, decided otherwise (D21): each pass starts clean."""
    builder = builder_of("w v join", "w v").add_waiting_edge(["w", "v"], "join")
    blueprint = builder.blueprint()
    passed = plan(blueprint, *first)
    assert (names(passed), passed.joins) == (["join"], NO_JOINS)
    alone = plan(blueprint, "v", joins=passed.joins)
    assert (names(alone), alone.joins) == ([], arrived(join="v"))
    assert names(plan(blueprint, *second, joins=alone.joins)) == ["join"]


def test_outsider_does_not_stand_for_a_predecessor() -> None:
    """Scenario 117."""
    routes = plan(diamond(), ("a", gone("d")), joins=arrived(d="b"))
    assert (names(routes), routes.joins) == ([], arrived(d="b a"))
    assert names(plan(diamond(), "c", joins=routes.joins)) == ["d"]


def test_withheld_send_keeps_its_argument() -> None:
    """Scenario 114, decided otherwise (D11)."""
    held = plan(diamond(), ("a", gone(Send("d", {"x": 1}), Send("d", None))))
    assert held.successors == ()
    assert held.joins.withheld == {"d": ({"x": 1}, None)}
    fired = plan(diamond(), "b", "c", joins=held.joins)
    assert fired.successors == (act("d", {"x": 1}), act("d", None))
    assert fired.joins == NO_JOINS


def test_join_stands_where_its_last_arrival_stands() -> None:
    builder = builder_of("b c e d f", "b c e").add_waiting_edge(["b", "c"], "d")
    builder.add_edge("e", "f")
    blueprint = builder.blueprint()
    assert names(plan(blueprint, "b", "e", "c")) == ["f", "d"]
    assert names(plan(blueprint, "b", "c", "e")) == ["d", "f"]


def test_empty_fan_out_arrives_for_its_destinations() -> None:
    """PF-11, decision 7: an empty fan-out joins once."""
    builder = builder_of("worker join other", "other").add_command_node(
        "fan", _handler, destinations=["worker"]
    )
    builder.add_waiting_edge(["worker"], "join")
    blueprint = builder.blueprint()
    assert names(plan(blueprint, ("fan", gone()))) == ["join"]
    assert names(plan(blueprint, ("fan", gone(Send("worker", 1))))) == ["worker"]
    held = plan(blueprint, ("fan", gone()), remaining="worker")
    assert (names(held), held.joins) == ([], arrived(join="worker"))


def _handler(state: Tally) -> None:
    """Never called."""


def relieved() -> Blueprint:
    """A router at `a` may take `slow`, which ends at the join two hops on."""
    builder = builder_of("a fast slow next join")
    builder.add_conditional_edges(
        "a", lambda state: state.names, {"fast": "fast", "slow": "slow"}
    )
    builder.add_edge("slow", "next").add_waiting_edge(["fast", "next"], "join")
    builder.add_barrier_relief("a", "next", "join")
    return builder.blueprint()


def plan_relieved(labels: list[str], *completed: str, **options: Any) -> RoutePlan:
    return plan_routes(
        relieved(), Tally(names=labels), done(*completed), step=1, **options
    )


def test_relief_arrives_for_a_branch_that_was_skipped() -> None:
    """Scenarios 111 and 113: the arrival is kept at any boundary."""
    routes = plan_relieved(["fast"], "a", joins=NO_JOINS)
    assert (names(routes), routes.joins) == (["fast"], arrived(join="next"))
    done_fast = plan_relieved([], "fast", joins=routes.joins)
    assert (names(done_fast), done_fast.joins) == (["join"], NO_JOINS)


def test_relief_does_not_arrive_for_a_branch_further_on() -> None:
    """Scenario 112: the taken branch leads there in two hops."""
    routes = plan_relieved(["fast", "slow"], "a", joins=NO_JOINS)
    assert (names(routes), routes.joins) == (["fast", "slow"], NO_JOINS)


def test_relief_that_completes_a_join_fires_it() -> None:
    """Scenario 111: the join is told of by no route."""
    routes = plan_relieved([], "a", joins=arrived(join="fast"))
    assert (names(routes), routes.events) == (["join"], ())


def two_joins(first: str, second: str) -> Blueprint:
    """`second` waits for `first`, which waits for x; both wait for nothing else."""
    builder = builder_of(f"x y {first} {second}", "x y")
    builder.add_waiting_edge(["x"], first)
    builder.add_waiting_edge([first, "y"], second)
    return builder.blueprint()


@pytest.mark.parametrize(("first", "second"), [("j1", "j2"), ("j2", "j1")])
def test_join_that_fires_holds_back_the_one_behind_it(first: str, second: str) -> None:
    """Whatever their names are: the one in front is pending once it fires."""
    blueprint = two_joins(first, second)
    before = arrived(**{second: first})
    routes = plan(blueprint, "x", "y", joins=before)
    assert names(routes) == [first]
    assert routes.joins == arrived(**{second: f"{first} y"})
    assert names(plan(blueprint, first, joins=routes.joins)) == [second]


def test_ring_of_joins_is_decided_in_canonical_order() -> None:
    builder = builder_of("x j1 j2", "x").add_edge("x", ["j1", "j2"])
    builder.add_waiting_edge(["j2"], "j1").add_waiting_edge(["j1"], "j2")
    routes = plan(builder.blueprint(), "x", joins=arrived(j1="j2", j2="j1"))
    assert names(routes) == ["j1"]


def test_chain_of_held_joins_lets_every_second_one_fire() -> None:
    """A join that is held back is not pending, so it holds nothing back itself."""
    builder = builder_of("x j1 j2 j3", "x").add_waiting_edge(["x"], "j3")
    builder.add_waiting_edge(["j3"], "j2").add_waiting_edge(["j2"], "j1")
    before = arrived(j1="j2", j2="j3")
    routes = plan(builder.blueprint(), "x", joins=before)
    assert sorted(names(routes)) == ["j1", "j3"]
    assert routes.joins == arrived(j2="j3")


def test_arrivals_at_a_join_that_is_gone_are_forgotten() -> None:
    """After a move to a revision without it, nothing could ever fire it."""
    stale = JoinState(arrivals={"gone": ("b",)}, withheld={"gone": (1,)})
    routes = plan(diamond(), "b", joins=stale)
    assert routes.joins == arrived(d="b")
