"""Compiled definitions: bytes, digests, order, the JSON form (spec/composition.md)."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.canonical import canonical_bytes, digest_of
from stateknot.kernel.definition import GraphDefinition, GraphLimits, GraphNode
from stateknot.kernel.definition_parts import GraphRoute
from tests.kernel.graph_samples import (
    Json,
    chain,
    composition_vectors,
    end,
    graph,
    node,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = composition_vectors()
PLAIN = [name for name in VECTORS if name.startswith("plain_compile_")]
BOTH_ENDS = graph(
    [
        node("start", routes={"left": ["left"], "both": ["left", "right"]}),
        node("left", ["join", "right"]),
        node("right", wait_to=["join"]),
        end("join"),
    ],
    ["start", "right"],
)


@pytest.mark.parametrize("name", PLAIN)
def test_compile_of_vector_gives_recorded_bytes(name: str) -> None:
    """Scenarios 1, 2: definition digest, wire digest and bytes are the reference's."""
    vector = VECTORS[name]
    definition = GraphDefinition.compile(**vector["inputs"]["graph"])
    expected = vector["expected"]
    assert definition.canonical_bytes() == expected["canonical_definition"].encode()
    assert definition.digest == expected["definition_digest"]
    wire = canonical_bytes(definition.to_wire())
    assert digest_of(wire) == expected["canonical_wire_digest"]


def test_compile_keeps_nodes_in_id_order() -> None:
    """Scenario 3: reversed input gives the same bytes."""
    data = VECTORS["plain_compile_core_graph_v1_frozen"]["inputs"]["graph"]
    turned = {**data, "nodes": data["nodes"][::-1]}
    turned["entry_nodes"] = data["entry_nodes"][::-1]
    definition = GraphDefinition.compile(**turned)
    order = VECTORS["plain_compile_core_graph_v1_frozen"]["expected"]["node_order"]
    assert [one.node_id for one in definition.nodes] == order
    assert definition == GraphDefinition.compile(**data)


@given(st.data())
def test_compile_ignores_the_order_of_its_input(data: st.DataObject) -> None:
    """Scenarios 3, 4: permuting nodes, routes, successors, entries changes nothing."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [shuffled(item) for item in data.draw(st.permutations(value))]
        return value

    again = GraphDefinition.compile(**shuffled(BOTH_ENDS))
    assert again.canonical_bytes() == _compiled(BOTH_ENDS).canonical_bytes()


def test_ids_are_ordered_by_their_bytes() -> None:
    """Section 1.2: '-' before '.' before digits, capitals before '_' before small."""
    ids = ["a-b", "a.b", "a0", "aB", "a_b", "ab"]
    sample = graph([node("a", ids, terminal=True), *map(end, ids)], ["a"])
    sample["limits"]["maximum_parallelism"] = 6
    definition = _compiled(sample)
    assert definition.nodes[0].continue_to == tuple(ids)


def test_limits_stand_as_text_and_as_number() -> None:
    """Scenario 5."""
    limits = _compiled(chain("a", "b")).to_dict()["limits"]
    assert limits == {"maximum_supersteps": "64", "maximum_parallelism": 4}


def test_absent_sets_are_left_out() -> None:
    """Scenario 6: routes and terminal always stand, the other two when given."""
    last = _compiled(chain("a", "b")).to_dict()["nodes"][1]
    assert last == {"node_id": "b", "routes": [], "terminal": True}


@pytest.mark.parametrize("sample", [BOTH_ENDS, chain("a", "b")])
def test_wire_round_trip_gives_an_equal_definition(sample: Json) -> None:
    """Scenario 7."""
    definition = _compiled(sample)
    text = json.dumps(definition.to_wire())
    again = GraphDefinition.from_json(text)
    assert again == definition
    assert hash(again) == hash(definition)
    assert again.nodes == definition.nodes
    assert again.to_dict() == definition.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        lambda wire: wire["nodes"][0].update(terminal=True),
        lambda wire: wire["entry_nodes"].append("b"),
        lambda wire: wire.update(definition_digest="sha256:" + "0" * 64),
        lambda wire: wire["identity"]["capability"].update(version="1.0.1"),
    ],
)
def test_from_dict_of_tampered_wire_is_refused(change: Callable[[Json], None]) -> None:
    """Scenario 8."""
    wire = _compiled(chain("a", "b")).to_wire()
    change(wire)
    with refused("DigestMismatch"):
        GraphDefinition.from_dict(wire)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda wire: wire.update(child_runs={}), "UnknownKey"),
        (lambda wire: wire["nodes"][0].update(note=""), "UnknownKey"),
        (lambda wire: wire["nodes"][0].pop("routes"), "MissingKey"),
        (lambda wire: wire["nodes"][0].pop("terminal"), "MissingKey"),
        (lambda wire: wire.pop("reducer"), "MissingKey"),
        (lambda wire: wire.update(limits=["64", 4]), "WrongType"),
        (lambda wire: wire["nodes"][0].update(terminal=1), "WrongType"),
        (lambda wire: wire["limits"].update(maximum_supersteps=64), "WrongType"),
        (lambda wire: wire["limits"].update(maximum_supersteps="064"), "WrongType"),
        (lambda wire: wire["limits"].update(maximum_parallelism="4"), "WrongType"),
        (lambda wire: wire.update(entry_nodes="a"), "WrongType"),
    ],
)
def test_from_dict_of_malformed_wire_is_refused(
    change: Callable[[Json], Any], kind: str
) -> None:
    """Scenario 9: unknown and missing keys, an array for an object, other types."""
    wire = _compiled(chain("a", "b")).to_wire()
    change(wire)
    with refused(kind) as raised:
        GraphDefinition.from_dict(wire)
    assert raised.value.owner == "GraphWire"


def test_from_dict_takes_null_for_an_absent_set() -> None:
    """Section 1.2: continue_to and wait_to may be missing or null."""
    sample = chain("a", "b")
    sample["nodes"][1].update(continue_to=None, wait_to=None)
    assert GraphDefinition.from_dict(sample) == _compiled(chain("a", "b"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"nodes": [], "nodes": []}', "DuplicateKey"),
        ('{"nodes": [{"a": 1, "\\u0061": 2}]}', "DuplicateKey"),
        ("{} {}", "NotJson"),
        ('{"nodes": NaN}', "NotJson"),
        ("[" * 100_000, "NotJson"),
        (" " * 5_000_000, "TooLarge"),
        ("[]", "WrongType"),
    ],
)
def test_from_json_of_hostile_text_is_refused(text: str, kind: str) -> None:
    """Scenario 9: duplicate keys, also after unescaping, and what is no JSON."""
    with refused(kind):
        GraphDefinition.from_json(text)


def test_compile_takes_values_as_well_as_json() -> None:
    sample = chain("a", "b")
    parts = _compiled(sample)
    sample |= {
        "identity": parts.identity,
        "state_schema": parts.state_schema,
        "reducer": parts.reducer,
        "limits": GraphLimits(maximum_supersteps=64, maximum_parallelism=4),
        "nodes": [
            GraphNode("b", terminal=True),
            {"node_id": "a", "continue_to": ["b"]},
        ],
    }
    assert GraphDefinition.compile(**sample) == parts


def test_node_looks_one_up() -> None:
    definition = _compiled(BOTH_ENDS)
    assert definition.node("start").routes[0] == GraphRoute("both", ["left", "right"])
    with pytest.raises(KeyError):
        definition.node("nobody")
    with pytest.raises(KeyError):
        definition.node("zz")


def test_reference_has_three_keys() -> None:
    """Section 1.2; the vector's parent reference is the recorded one."""
    vector = VECTORS["bounded_loop_3_frozen"]
    parent = _compiled(vector["inputs"]["parent"])
    assert parent.reference() == vector["expected"]["parent_reference"]


def test_definition_survives_copy_and_pickle() -> None:
    definition = _compiled(BOTH_ENDS)
    assert copy.deepcopy(definition) == definition
    again = pickle.loads(pickle.dumps(definition))  # noqa: S301  (our own bytes)
    assert again.canonical_bytes() == definition.canonical_bytes()


def test_to_dict_gives_containers_of_its_own() -> None:
    definition = _compiled(BOTH_ENDS)
    definition.to_dict()["nodes"].clear()
    assert digest_of(canonical_bytes(definition.to_dict())) == definition.digest


def _compiled(sample: Json) -> GraphDefinition:
    return GraphDefinition.compile(**sample)
