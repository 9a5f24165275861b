"""Where completed activations lead, at the pure level."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel import routing
from stateknot.kernel.blueprint import Blueprint
from stateknot.kernel.commands import Send
from stateknot.kernel.outcome import Completed
from stateknot.kernel.routing import RouteError, plan_routes, with_ids
from stateknot.kernel.selection import RoutePlan
from stateknot.kernel.vocabulary import END, START
from tests.kernel.blueprint_samples import NO_JOINS, act, builder_of, done, gone
from tests.kernel.state_samples import Tally


def plan(blueprint: Blueprint, completed: Any, **options: Any) -> RoutePlan:
    options.setdefault("joins", NO_JOINS)
    return plan_routes(blueprint, Tally(note="n"), completed, step=1, **options)


def names(routes: RoutePlan) -> list[str]:
    return [activation.node for activation in routes.successors]


class Label(Enum):
    YES = "yes"


def routed(answer: Any) -> Blueprint:
    builder = builder_of("a b c")
    builder.add_conditional_edges("a", lambda _state: answer, {"yes": "b", "no": "c"})
    return builder.blueprint()


def test_edges_lead_on_in_canonical_order() -> None:
    """Decision 1."""
    builder = builder_of("a z b m").add_edge("a", ["z", "b", "m"])
    assert names(plan(builder.blueprint(), done("a"))) == ["b", "m", "z"]


@given(st.permutations(["b", "c", "d", "e", "join"]), st.permutations(["b", "c", "d"]))
def test_order_of_insertion_changes_nothing(targets: Any, sources: Any) -> None:
    """Decision 1: no set's or builder's order leaks into the active list."""
    builder = builder_of("a b c d e join")
    for target in targets:
        builder.add_edge("a", target)
    for source in sources:
        builder.add_waiting_edge([source], "join")
    builder.add_edge("e", sources)
    blueprint = builder.blueprint()
    assert names(plan(blueprint, done("a"))) == ["b", "c", "d", "e"]
    assert names(plan(blueprint, done("e", "d", "c", "b"))) == ["b", "c", "d"]


def test_active_order_is_that_of_the_sources() -> None:
    """Decision 1: completed activations in order, each one's targets in order."""
    builder = builder_of("a b x y z", "a b")
    builder.add_edge("a", ["z", "x"]).add_edge("b", ["y", "x"])
    blueprint = builder.blueprint()
    assert names(plan(blueprint, done("a", "b"))) == ["x", "z", "y"]
    assert names(plan(blueprint, done("b", "a"))) == ["x", "y", "z"]


def test_goto_replaces_the_edges_in_the_order_given() -> None:
    """EX-08, decision 14."""
    builder = builder_of("a b c d").add_edge("a", "b")
    routes = plan(builder.blueprint(), done(("a", gone("d", "c", "d"))))
    assert names(routes) == ["d", "c"]


def test_goto_end_suppresses_the_edges() -> None:
    builder = builder_of("a b").add_edge("a", "b")
    routes = plan(builder.blueprint(), done(("a", gone(END))))
    assert (routes.successors, routes.events) == ((), ())


def test_empty_goto_falls_back_to_the_edges() -> None:
    builder = builder_of("a b").add_edge("a", "b")
    assert names(plan(builder.blueprint(), done(("a", gone())))) == ["b"]


def test_target_reached_twice_is_due_once() -> None:
    """EX-09."""
    builder = builder_of("a b c", "a b").add_edge("a", "c").add_edge("b", "c")
    assert names(plan(builder.blueprint(), done("a", "b"))) == ["c"]


def test_sends_are_never_merged() -> None:
    outcome = gone(Send("b", 1), "b", Send("b", 1), "b", Send("b"))
    routes = plan(builder_of("a b").blueprint(), done(("a", outcome)))
    assert routes.successors == (act("b", 1), act("b"), act("b", 1), act("b", None))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("yes", ["b"]),
        (["no", "yes"], ["c", "b"]),
        (("yes", "yes"), ["b"]),
        (Label.YES, ["b"]),
        ([], []),
        (END, []),
        (["yes", END], ["b"]),
    ],
)
def test_router_chooses_by_label(answer: Any, expected: list[str]) -> None:
    assert names(plan(routed(answer), done("a"))) == expected


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ("maybe", "missing_route", "'maybe'"),
        (None, "missing_route", "'None'"),
        ({"yes"}, "missing_route", "allowed: 'yes', 'no'"),
        (Send("b"), "missing_route", "Send"),
        (Unprintable(), "routing", "no text"),
    ],
)
def test_router_without_a_known_label_fails(answer: Any, kind: str, text: str) -> None:
    """EX-10: the failure names the router, the label and the allowed ones."""
    with pytest.raises(RouteError) as caught:
        plan(routed(answer), done("b", "a"))
    assert (caught.value.index, caught.value.kind) == (1, kind)
    assert text in str(caught.value)
    assert "<lambda>" in f"{caught.value.place} {caught.value}"


def test_router_works_on_its_own_copy_of_the_state() -> None:
    """ST-07."""
    state = Tally(items=["x"])

    def router(given: Tally) -> str:
        given.items.append("y")
        return "yes"

    builder = builder_of("a b").add_conditional_edges("a", router, {"yes": "b"})
    plan_routes(builder.blueprint(), state, done("a"), joins=NO_JOINS, step=1)
    assert state.items == ["x"]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (gone("b", "nowhere"), "unknown_target"),
        (gone(Send("nowhere")), "unknown_target"),
        (gone(START), "invalid_target"),
        (Completed(route="yes"), "undeclared_route"),
    ],
)
def test_target_that_cannot_be_is_refused(outcome: Completed, kind: str) -> None:
    """Scenario 108 and EX-10."""
    with pytest.raises(RouteError) as caught:
        plan(builder_of("a b").blueprint(), done("b", ("a", outcome)))
    assert (caught.value.index, caught.value.kind) == (1, kind)


def test_command_may_choose_a_route_of_its_node() -> None:
    routes = plan(routed("yes"), done(("a", Completed(route="no"))))
    assert names(routes) == ["c"]


def test_each_target_is_told_once_except_the_end() -> None:
    """Scenario 163: also when it is merged into one that is due already."""
    builder = builder_of("a b c", "a b").add_edge("a", ["c", END]).add_edge("b", "c")
    events = plan(builder.blueprint(), done("a", "b")).events
    assert [(event.node, event.data["to"]) for event in events] == [
        ("a", "c"),
        ("b", "c"),
    ]


def test_superstep_over_the_send_limit_blames_who_went_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the last activation, whose retry would change nothing."""
    monkeypatch.setattr(routing, "MAXIMUM_SENDS", 3)
    blueprint = builder_of("a b c", "a b c").blueprint()
    two, three = gone(*[Send("c")] * 2), gone(*[Send("c")] * 3)
    assert len(plan(blueprint, done(("a", three))).successors) == 3
    with pytest.raises(RouteError, match="limit is 3") as caught:
        plan(blueprint, done(("a", two), ("b", two), "c"))
    assert caught.value.index == 1


def test_ids_are_made_once_and_kept() -> None:
    pending = with_ids([act("a"), act("b#1:0:b"), act("a", 5)], 7)
    assert [a.id for a in pending] == ["7:0:a", "1:0:b", "7:2:a"]
    assert with_ids(pending, 8) == pending
