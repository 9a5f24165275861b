"""What may be a template or a call: scenarios 27 to 35 of spec/composition.md."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import GraphError
from stateknot.kernel.composition import GraphSubgraphCall, SharedStateSubgraph
from stateknot.kernel.definition import GraphDefinition
from tests.kernel.composition_samples import body, compiled, loop, template
from tests.kernel.graph_samples import Json, chain, end, graph, node, refused

CYCLE = graph(
    [node("work", routes={"retry": ["work"], "accept": ["done"]}), end("done")],
    ["work"],
)
WAITING_CYCLE = graph(
    [node("work", ["pause"]), node("pause", ["done"], wait_to=["work"]), end("done")],
    ["work"],
)


def test_ports_are_the_pure_terminal_nodes() -> None:
    assert template().ports == ("again", "done")
    assert template().executable_count == 2


@pytest.mark.parametrize(
    "other", [{"to": ["b"]}, {"routes": {"r": ["b"]}}, {"wait_to": ["b"]}]
)
def test_terminal_that_leads_on_is_refused(other: Any) -> None:
    """Scenario 27."""
    with refused("MixedReturnPort"):
        template(graph([node("a", **other, terminal=True), end("b")], ["a"]))


@pytest.mark.parametrize("data", [CYCLE, WAITING_CYCLE])
def test_cycle_is_refused(data: Json) -> None:
    """Scenario 28: wait edges count as edges."""
    with refused("CyclicTemplate"):
        template(data)


def test_port_in_the_entry_set_is_refused() -> None:
    """Scenario 29."""
    with refused("EntryIsReturnPort"):
        template(graph([node("a", ["b"]), end("b")], ["a", "b"]))


def test_missing_port_is_reported_before_the_cycle() -> None:
    """Scenario 30: a graph of waits alone is legal, but no template."""
    with refused("MissingReturnPorts") as raised:
        template(graph([node("a", wait_to=["a"])], ["a"]))
    assert [one.kind for one in raised.value.issues][1:] == ["CyclicTemplate"]


def test_path_longer_than_the_step_ceiling_is_refused() -> None:
    """Scenario 31: ports are not counted."""
    with refused("TemplateStepLimit"):
        template(body(supersteps=1))
    assert template(body(supersteps=2)).ports


def test_longest_of_several_paths_counts() -> None:
    """Scenario 31: a short cut to the last node does not shorten the longest path."""
    nodes = [node("a", ["b", "c"]), node("b", ["c"]), node("c", ["d"]), end("d")]
    with refused("TemplateStepLimit") as raised:
        template(graph(nodes, ["a"], supersteps=2))
    assert "3 nodes" in raised.value.message


def test_extensions_in_a_template_are_refused() -> None:
    extended = GraphDefinition.compile(
        **chain("a", "b"), extensions={"command_nodes": {"a": ["b"]}}
    )
    with refused("ExtensionsUnsupported"):
        SharedStateSubgraph(extended)


@pytest.mark.parametrize("count", [-1, 0, 1025])
def test_iterations_out_of_bounds_are_refused(count: int) -> None:
    """Scenario 32."""
    with refused("InvalidIterationLimit"):
        loop(count)


@pytest.mark.parametrize("count", [1, 1024])
def test_iterations_at_their_bounds_pass_at_the_call(count: int) -> None:
    """Scenario 32: whether they fit into a graph is another question."""
    assert loop(count).maximum_iterations == count


def test_iteration_check_precedes_the_port_check() -> None:
    """Scenario 33; both are told."""
    with refused("InvalidIterationLimit") as raised:
        GraphSubgraphCall.bounded_loop("review", template(), "typo", 0)
    assert [one.kind for one in raised.value.issues] == [
        "InvalidIterationLimit",
        "UnknownRepeatPort",
    ]


@pytest.mark.parametrize("port", ["typo", "work", ""])
def test_unknown_repeat_port_is_refused(port: str) -> None:
    """Scenario 34: an executable node is no port either."""
    with refused("UnknownRepeatPort"):
        GraphSubgraphCall.bounded_loop("review", template(), port, 2)


@pytest.mark.parametrize(
    "pairs",
    [
        {"again": "r"},
        {},
        {"again": "r", "done": "r"},
        [("again", "r"), ("again", "s")],
        [("again", "r"), ("done", "s"), ("done", "t")],
        {"again": "r", "done": "s", "typo": "t"},
        {"again": "r", "typo": "s"},
    ],
)
def test_bindings_that_are_not_one_to_one_are_refused(pairs: Any) -> None:
    """Scenario 35: partial, duplicate route, duplicate port, unknown port."""
    with refused("ReturnRoutesMismatch"):
        loop(2).with_return_routes(pairs)


def test_complete_bindings_pass_as_mapping_or_pairs() -> None:
    """Scenario 35."""
    pairs = [("done", "left.done"), ("again", "left.again")]
    call = loop(2).with_return_routes(pairs)
    assert call == loop(2).with_return_routes(dict(pairs))
    assert call.route_of("done") == "left.done"
    assert loop(2).route_of("done") == "done"


def test_malformed_call_site_and_route_are_refused() -> None:
    with pytest.raises(GraphError, match="NodeId"):
        GraphSubgraphCall.once("a/b", template())
    with pytest.raises(GraphError, match="RouteId"):
        loop(2).with_return_routes({"again": "a b", "done": "d"})


def test_once_names_no_repeat_port() -> None:
    call = GraphSubgraphCall.once("review", SharedStateSubgraph(compiled(body())))
    assert (call.maximum_iterations, call.repeat_port) == (1, None)
    assert call.return_routes == {}
