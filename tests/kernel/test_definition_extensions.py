"""Extra keys of a definition: left out when empty, sorted, counted as edges."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.kernel.definition import GraphDefinition, GraphNode
from stateknot.kernel.vocabulary import END
from tests.kernel.graph_samples import Json, chain, end, graph, node, refused

JOINED: Json = graph(
    [node("a"), node("b"), node("c"), end("join"), end("helper")], ["a", "b", "c"]
)
EXTENSIONS: Json = {
    "waiting_edges": {"join": ["b", "a"]},
    "command_nodes": {"c": ["helper", "a"]},
    "barrier_reliefs": [{"source": "c", "relief": "helper", "barrier": "join"}],
    "end_routes": {"c": ["stop", "give.up"]},
}


def _compile(extensions: Any, sample: Json = JOINED) -> GraphDefinition:
    return GraphDefinition.compile(**sample, extensions=extensions)


def test_empty_extensions_keep_the_digest() -> None:
    """design.md section 4: extra keys are left out when unused."""
    plain = GraphDefinition.compile(**chain("a", "b"))
    empty: Json = {"waiting_edges": {}, "barrier_reliefs": []}
    assert _compile(empty, chain("a", "b")) == plain


def test_extensions_stand_sorted_in_the_definition() -> None:
    data = _compile(EXTENSIONS).to_dict()
    assert data["waiting_edges"] == {"join": ["a", "b"]}
    assert data["command_nodes"] == {"c": ["a", "helper"]}
    assert data["end_routes"] == {"c": ["give.up", "stop"]}
    assert data["barrier_reliefs"] == EXTENSIONS["barrier_reliefs"]


def test_extensions_survive_the_wire() -> None:
    definition = _compile(EXTENSIONS)
    again = GraphDefinition.from_dict(definition.to_wire())
    assert again.extensions == definition.extensions
    assert again == definition


def test_waiting_edges_and_command_destinations_reach_nodes() -> None:
    """Without them nothing leads to the join and the helper."""
    less = {key: EXTENSIONS[key] for key in ("waiting_edges", "end_routes")}
    with refused("UnreachableNode") as raised:
        _compile(less)
    assert "'helper'" in raised.value.message


def test_end_route_is_a_boundary() -> None:
    only = graph([node("a")], ["a"])
    assert _compile({"end_routes": {"a": ["stop"]}}, only).nodes[0].node_id == "a"


def test_command_may_lead_to_the_end() -> None:
    """END is a destination, but neither a node nor an edge; it is a boundary."""
    only = graph([node("a")], ["a"])
    definition = _compile({"command_nodes": {"a": ["a", END]}}, only)
    assert definition.to_dict()["command_nodes"] == {"a": [END, "a"]}
    assert GraphDefinition.from_dict(definition.to_wire()) == definition
    with refused("NoBoundaryPath"):
        _compile({"command_nodes": {"a": ["a"]}}, only)


def test_extended_node_needs_an_extension() -> None:
    """A node value that says `extended` and is in no extension has no way out."""
    sample = {**graph([], ["a"]), "nodes": [GraphNode("a", extended=True)]}
    assert _compile({"command_nodes": {"a": [END]}}, sample).nodes[0].node_id == "a"
    with refused("NoControlOutcome"):
        _compile({}, sample)


def test_node_without_any_way_out_is_refused() -> None:
    """Scenario 26, with extensions: `c` has a way out only there."""
    with refused("NoControlOutcome"):
        _compile({"waiting_edges": {"join": ["a", "b"]}})


@pytest.mark.parametrize(
    ("extensions", "kind"),
    [
        ({"sends": {}}, "UnknownKey"),
        ({"waiting_edges": [["a"], "join"]}, "WrongType"),
        ({"waiting_edges": {"join": "ab"}}, "WrongType"),
        ({"waiting_edges": {"join": ["a", "a"]}}, "Duplicate"),
        ({"barrier_reliefs": {}}, "WrongType"),
        ({"barrier_reliefs": [{"source": "a"}]}, "MissingKey"),
        ({**EXTENSIONS, "waiting_edges": {"nobody": ["a", "b"]}}, "MissingNode"),
        ({**EXTENSIONS, "end_routes": {"c": ["x"], "nobody": ["y"]}}, "MissingNode"),
        ({**EXTENSIONS, "end_routes": {"c": ["x"], "a": ["x"]}}, "DuplicateRoute"),
    ],
)
def test_malformed_extensions_are_refused(extensions: Any, kind: str) -> None:
    with refused(kind):
        _compile(extensions)


def test_unreachable_nodes_pass_where_gotos_are_undeclared() -> None:
    """design.md section 3, Edges: an error in the closed form only."""
    sample = graph([node("a", ["a"]), end("lonely")], ["a"])
    definition = GraphDefinition.compile(**sample, require_reachable=False)
    wire = definition.to_wire()
    assert GraphDefinition.from_dict(wire, require_reachable=False) == definition
    with refused("UnreachableNode"):
        GraphDefinition.from_dict(wire)
