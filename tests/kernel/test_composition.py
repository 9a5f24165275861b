"""Lowering of calls: scenarios 36 to 61 of spec/composition.md."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.composition import GraphComposition, GraphSubgraphCall
from stateknot.kernel.composition_identity import claim_identity
from stateknot.kernel.definition import GraphDefinition
from tests.kernel.composition_samples import (
    body,
    caller,
    compiled,
    composed,
    follow,
    generated,
    loop,
    template,
)
from tests.kernel.graph_samples import Json, end, graph, node, refused

TWO_SITES = graph(
    [
        node("left", routes={"left.again": ["failed"], "left.done": ["right"]}),
        node("right", routes={"right.again": ["failed"], "right.done": ["done"]}),
        end("failed"),
        end("done"),
    ],
    ["left", "right"],
)


def _bound(site: str) -> GraphSubgraphCall:
    call = GraphSubgraphCall.once(site, template())
    return call.with_return_routes({"again": f"{site}.again", "done": f"{site}.done"})


def test_call_site_and_ports_are_gone() -> None:
    """Scenario 37."""
    composition = composed(loop(3))
    plain = [one.node_id for one in composition.graph.nodes if one.node_id[:3] != "skc"]
    assert plain == ["exhausted", "finish"]
    assert composition.node_source("finish") is None


def test_iterations_follow_each_other_up_to_exhaustion() -> None:
    """Scenarios 38, 39: the last retry takes the repeat port's own route."""
    made = composed(loop(3))
    work = [generated(made, "work", i) for i in range(3)]
    decide = [generated(made, "decide", i) for i in range(3)]
    assert made.graph.entry_nodes == (work[0],)
    for i in range(3):
        assert made.graph.node(work[i]).continue_to == (decide[i],)
        after = work[i + 1] if i < 2 else "exhausted"
        assert follow(made, decide[i], "retry") == (after,)
        assert follow(made, decide[i], "accept") == ("finish",)


@given(st.integers(1, 6), st.lists(st.sampled_from(["retry", "accept"]), max_size=8))
def test_composed_walk_is_the_loop_as_written(bound: int, choices: list[str]) -> None:
    """Scenarios 38, 56: against a plain loop over the same decisions."""
    made = composed(loop(bound))
    (at,) = made.graph.entry_nodes
    walked = []
    for choice in choices:
        source = made.node_source(at)
        if source is None:
            break
        walked.append(source.iteration)
        (decide,) = made.graph.node(at).continue_to or ()
        (at,) = follow(made, decide, choice)
    rounds = 0
    ending = None
    for choice in choices[:bound]:
        rounds += 1
        if choice == "accept":
            ending = "finish"
            break
    else:
        ending = "exhausted" if rounds == bound else generated(made, "work", rounds)
    assert walked == list(range(rounds))
    assert at == ending


def test_composing_again_gives_identical_bytes() -> None:
    """Scenario 40; another bound gives others."""
    first, again = composed(loop(3)), composed(loop(3))
    assert first.graph.canonical_bytes() == again.graph.canonical_bytes()
    assert first == again
    assert composed(loop(2)).graph != first.graph


def test_renamed_template_changes_every_generated_id() -> None:
    """Scenario 41."""
    revised = composed(loop(3, template(body(name="body-v2"))))
    assert revised.node_sources.keys().isdisjoint(composed(loop(3)).node_sources)


def test_order_of_calls_changes_no_byte() -> None:
    """Scenario 43: two call-sites, disjoint ids, two entries."""
    one = composed(_bound("left"), _bound("right"), parent=TWO_SITES)
    other = composed(_bound("right"), _bound("left"), parent=TWO_SITES)
    assert one.graph.canonical_bytes() == other.graph.canonical_bytes()
    assert list(one.node_sources) == list(other.node_sources)
    assert len(one.graph.entry_nodes) == 2
    assert len(one.node_sources) == 4


@given(st.data())
def test_no_order_of_any_part_changes_a_byte(data: st.DataObject) -> None:
    """Scenarios 3, 4, 43: nodes, routes, successors, bindings, calls, both graphs."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = data.draw(st.permutations(list(value)))
            return {key: shuffled(value[key]) for key in keys}
        if isinstance(value, list):
            return [shuffled(item) for item in data.draw(st.permutations(value))]
        return value

    def call(site: str, parts: Json) -> GraphSubgraphCall:
        again = GraphSubgraphCall.bounded_loop(site, template(parts), "again", 2)
        routes = {"again": f"{site}.again", "done": f"{site}.done"}
        return again.with_return_routes(shuffled(routes))

    sites = ["left", "right"]
    plain = composed(*(call(site, body()) for site in sites), parent=TWO_SITES)
    given_calls = [call(site, shuffled(body())) for site in shuffled(sites)]
    mixed = composed(*given_calls, parent=shuffled(TWO_SITES))
    assert mixed.graph.canonical_bytes() == plain.graph.canonical_bytes()
    assert mixed.source_map() == plain.source_map()


def test_port_forwards_into_another_call() -> None:
    """Scenario 44: no empty node stands between two calls."""
    made = composed(_bound("left"), _bound("right"), parent=TWO_SITES)
    after_left = follow(made, generated(made, "decide", 0, "left"), "accept")
    assert after_left == (generated(made, "work", 0, "right"),)


def test_composed_graph_is_a_template() -> None:
    """Scenarios 45, 46: a loop of two inside a loop of three."""
    inner = template(composed(loop(2)).graph.to_dict())
    call = GraphSubgraphCall.bounded_loop("outer", inner, "exhausted", 3)
    outer = graph(
        [node("outer", routes={"exhausted": ["out"], "finish": ["out"]}), end("out")],
        ["outer"],
    )
    made = composed(call, parent=outer)
    assert len(made.graph.nodes) == 3 * 4 + 1
    assert [one.node_id for one in made.graph.nodes if one.terminal] == ["out"]
    locals_ = {source.node_id for source in made.node_sources.values()}
    assert locals_ == composed(loop(2)).node_sources.keys()


def _waiting_body() -> Json:
    return graph(
        [
            node("pause", wait_to=["check"]),
            node("check", routes={"retry": ["again"]}, wait_to=["done"]),
            end("again"),
            end("done"),
        ],
        ["pause"],
    )


def test_wait_keeps_its_kind_through_the_loop() -> None:
    """Scenarios 47, 48: wait sets lead on to the caller, repeats go to the next."""
    made = composed(loop(2, template(_waiting_body())))
    check = generated(made, "check", 0)
    assert made.graph.node(generated(made, "pause", 0)).wait_to == (check,)
    assert made.graph.node(check).wait_to == ("finish",)
    assert made.graph.node(check).continue_to is None
    assert follow(made, check, "retry") == (generated(made, "pause", 1),)


def test_parallel_body_keeps_its_order_and_joins_once() -> None:
    """Scenario 49: ordinals count ports; source order is kept in an iteration."""
    parallel = graph(
        [
            node("alpha", ["join"]),
            node("beta", ["join"]),
            node("join", ["done"]),
            end("done"),
        ],
        ["beta", "alpha"],
    )
    parent = graph([node("call", routes={"done": ["end"]}), end("end")], ["call"])
    call = GraphSubgraphCall.once("call", template(parallel))
    made = composed(call, parent=parent)
    local = [made.node_sources[one].node_id for one in made.graph.entry_nodes]
    assert local == ["alpha", "beta"]
    join = generated(made, "join", 0, "call")
    assert join.endswith("-0003")
    into = [one for one in made.graph.nodes if one.continue_to == (join,)]
    assert len(into) == 2


def test_parallel_nodes_may_choose_different_ports() -> None:
    """Scenario 50: each port leads on by itself; the next set is the union."""
    fan = graph(
        [
            node("one", routes={"r1": ["again"], "a1": ["done"]}),
            node("two", routes={"r2": ["again"], "a2": ["done"]}),
            end("again"),
            end("done"),
        ],
        ["one", "two"],
    )
    made = composed(loop(2, template(fan)))
    entry_1 = (generated(made, "one", 1), generated(made, "two", 1))
    assert follow(made, generated(made, "one"), "r1") == tuple(sorted(entry_1))
    assert follow(made, generated(made, "two"), "a2") == ("finish",)


def test_kinds_of_one_call_have_three_digests() -> None:
    """Scenario 51: once, a loop of one, explicit default bindings."""
    once = GraphSubgraphCall.once("review", template())
    explicit = once.with_return_routes({"again": "again", "done": "done"})
    digests = {composed(call).graph.digest for call in (once, loop(1), explicit)}
    assert len(digests) == 3


def test_swapped_bindings_swap_the_edges() -> None:
    """Scenario 52."""
    swapped = composed(loop(1).with_return_routes({"again": "done", "done": "again"}))
    decide = generated(swapped, "decide")
    assert follow(swapped, decide, "accept") == ("exhausted",)
    assert follow(swapped, decide, "retry") == ("finish",)
    assert swapped.graph != composed(loop(1)).graph


def test_call_site_that_routes_to_itself_enters_iteration_zero() -> None:
    """Scenario 58: the bound counts from each entry into the call-site."""
    parent = graph(
        [
            node("review", routes={"again": ["review"], "done": ["finish"]}),
            end("finish"),
        ],
        ["review"],
    )
    made = composed(loop(2), parent=parent)
    last = generated(made, "decide", 1)
    assert follow(made, last, "retry") == made.graph.entry_nodes
    with refused("CyclicTemplate"):
        template(made.graph.to_dict())


def test_composed_graph_in_a_cycle_is_no_template() -> None:
    """Scenario 59."""
    parent = caller()
    parent["nodes"][1] = node("exhausted", ["review"])
    with refused("CyclicTemplate"):
        template(composed(loop(2), parent=parent).graph.to_dict())


def test_source_names_where_a_node_comes_from() -> None:
    """Scenario 61: an unknown label gives nothing, a node without routes no key."""
    made = composed(loop(2))
    decide = generated(made, "decide", 1)
    source = made.node_sources[decide]
    assert source.graph == compiled(body()).reference()
    assert (source.call_site, source.iteration) == ("review", 1)
    assert source.route_id("typo") is None
    stored = made.source_map()
    assert list(stored) == sorted(made.node_sources)
    assert stored[decide]["routes"].keys() == {"accept", "retry"}
    assert "routes" not in stored[generated(made, "work", 1)]


def test_extensions_of_ordinary_nodes_stay() -> None:
    """A builder's graph keeps its waiting edges around the calls it makes."""
    parent = caller()
    parent["nodes"].append(end("both"))
    extensions = {"waiting_edges": {"both": ["exhausted", "finish"]}}
    definition = GraphDefinition.compile(**parent, extensions=extensions)
    made = GraphComposition.compile(definition, [loop(2)])
    assert made.graph.extensions == definition.extensions


def test_taken_identity_is_refused() -> None:
    """Section 2.3, D: two nodes must never become one."""
    taken = {"review"}
    claim_identity(taken, "skc-1")
    with refused("IdentityCollision"):
        claim_identity(taken, "skc-1")


def test_unreachable_nodes_pass_where_gotos_are_undeclared() -> None:
    parent = caller()
    parent["nodes"].append(end("lonely"))
    loose = GraphDefinition.compile(**parent, require_reachable=False)
    made = GraphComposition.compile(loose, [loop(1)], require_reachable=False)
    assert made.graph.node("lonely").terminal
    with pytest.raises(KeyError):
        made.graph.node("review")
