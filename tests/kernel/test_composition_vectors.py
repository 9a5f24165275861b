"""Every recorded composition, id by id (spec/composition.md, section 3)."""

from __future__ import annotations

import hashlib

import pytest

from stateknot.kernel.canonical import canonical_bytes
from stateknot.kernel.composition_identity import composed_route_id, scope_preimage
from tests.kernel.composition_samples import call_of, compose_vector, templates_of
from tests.kernel.graph_samples import composition_vectors

VECTORS = {
    name: vector
    for name, vector in composition_vectors().items()
    if "parent" in vector["inputs"]
}
DETAILED = [name for name in VECTORS if "scopes" in VECTORS[name]["expected"]]


@pytest.mark.parametrize("name", VECTORS)
def test_composition_gives_recorded_digest(name: str) -> None:
    """Scenarios 36, 37, 39, 42 to 45, 47, 49, 51, 52: digest, size, counts, entries."""
    expected, composition = VECTORS[name]["expected"], compose_vector(VECTORS[name])
    graph = composition.graph
    assert graph.digest == expected["definition_digest"]
    assert len(graph.canonical_bytes()) == expected["canonical_definition_bytes"]
    assert len(graph.nodes) == expected["node_count"]
    assert len(composition.node_sources) == expected["source_count"]
    assert list(graph.entry_nodes) == expected["entry_nodes"]


@pytest.mark.parametrize("name", VECTORS)
def test_templates_have_recorded_digests_and_ports(name: str) -> None:
    expected, templates = VECTORS[name]["expected"], templates_of(VECTORS[name])
    assert {key: one.definition.digest for key, one in templates.items()} == expected[
        "template_definition_digests"
    ]
    assert {key: list(one.ports) for key, one in templates.items()} == (
        expected["template_ports"]
    )


@pytest.mark.parametrize("name", DETAILED)
def test_scope_preimages_are_the_recorded_bytes(name: str) -> None:
    """Scenario 60: the eight keys, null and {} for a single call."""
    vector, templates = VECTORS[name], templates_of(VECTORS[name])
    calls = {
        data["call_site"]: call_of(data, templates)
        for data in vector["inputs"]["calls"]
    }
    for scope in vector["expected"]["scopes"]:
        call = calls[scope["call_site"]]
        reference = call.template.definition.reference()
        parent = vector["expected"]["parent_reference"]
        data = scope_preimage(parent, reference, call, scope["iteration"])
        assert data.decode() == scope["preimage"]
        assert hashlib.sha256(data).hexdigest() == scope["sha256"]


@pytest.mark.parametrize("name", DETAILED)
def test_generated_nodes_are_the_recorded_ones(name: str) -> None:
    """Scenarios 38, 49, 61: sources, ordinals that count ports, order, edges."""
    expected, composition = VECTORS[name]["expected"], compose_vector(VECTORS[name])
    sources = {
        (source.call_site, source.iteration, source.node_id): node_id
        for node_id, source in composition.node_sources.items()
    }
    assert sources == {
        (one["call_site"], one["iteration"], one["source_node_id"]): one["node_id"]
        for one in expected["node_ids"]
    }
    order = [node.node_id for node in composition.graph.nodes]
    assert order == expected["composed_node_order"]
    assert composition.graph.to_dict() == expected["composed_definition"]


@pytest.mark.parametrize("name", DETAILED)
def test_generated_routes_are_the_recorded_ones(name: str) -> None:
    """Scenario 61: route lookup by the template's label."""
    composition = compose_vector(VECTORS[name])
    for route in VECTORS[name]["expected"]["route_ids"]:
        source = composition.node_sources[route["node_id"]]
        local = route["source_route_id"]
        assert source.route_id(local) == route["route_id"]
        assert composed_route_id(route["node_id"], local) == route["route_id"]
        assert (
            hashlib.sha256(route["preimage"].encode()).hexdigest()
            in (route["route_id"])
        )


def test_511_iterations_fill_the_node_ceiling() -> None:
    """Scenario 56: 1,024 nodes; first and last are the recorded ones."""
    vector = VECTORS["bounded_loop_511_at_node_ceiling"]
    nodes = compose_vector(vector).graph.nodes
    assert nodes[0].node_id == vector["expected"]["first_composed_node"]
    assert nodes[-1].node_id == vector["expected"]["last_skc_node"]


def test_no_calls_keep_the_parents_bytes() -> None:
    """Scenario 42."""
    vector = VECTORS["empty_composition"]
    composition = compose_vector(vector)
    parent = canonical_bytes(vector["inputs"]["parent"])
    assert composition.graph.canonical_bytes() == parent
    assert composition.source_map() == {}


def test_distinct_vectors_have_distinct_digests() -> None:
    """Scenarios 40, 41, 51: bound, kind of call, bindings and template all count."""
    names = [
        "bounded_loop_3_frozen",
        "bounded_loop_2",
        "bounded_loop_1",
        "once",
        "once_explicit_default_bindings",
        "revised_template_identity",
    ]
    assert len({compose_vector(VECTORS[name]).graph.digest for name in names}) == len(
        names
    )
