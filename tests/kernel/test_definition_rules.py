"""What compile refuses, and what it reports first (spec/composition.md, 1.4, 1.5)."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import GraphError
from stateknot.kernel.definition import GraphDefinition, ready_set
from stateknot.kernel.definition_parts import GraphLimits, GraphNode, GraphRoute
from stateknot.kernel.limits import MAXIMUM_DEFINITION_BYTES
from tests.kernel.graph_samples import (
    Json,
    chain,
    end,
    graph,
    load_vectors,
    node,
    refused,
)

FAULTY_GRAPHS: dict[str, Json] = {
    "compile_empty_nodes": graph([], ["a"]),
    "compile_empty_entry": graph([end("a")], []),
    "compile_missing_successor": graph([node("a", ["missing"])], ["a"]),
    "compile_unreachable": graph([end("a"), end("orphan")], ["a"]),
    "compile_duplicate_route": graph(
        [
            node("a", routes={"same": ["b"]}),
            node("b", routes={"same": ["c"]}),
            end("c"),
        ],
        ["a"],
    ),
    "compile_duplicate_node": graph([end("a"), end("a")], ["a"]),
    "compile_entry_parallelism": graph([end("a"), end("b")], ["a", "b"], parallelism=1),
    "compile_successor_parallelism": graph(
        [node("a", ["b", "c"]), end("b"), end("c")], ["a"], parallelism=1
    ),
    "node_no_control": graph([node("a")], ["a"]),
    "node_empty_continue": graph([node("a", [])], ["a"]),
    "route_empty_successors": graph([node("a", routes={"r": []})], ["a"]),
    "routes_duplicate": graph(
        [{**end("a"), "routes": [{"route_id": "r", "successors": ["a"]}] * 2}], ["a"]
    ),
    "limits_zero_steps": chain("a", "b", supersteps=0),
    "limits_zero_parallelism": chain("a", "b", parallelism=0),
    "ready_duplicate": graph([end("b")], ["b", "b"]),
}
PREFIXES = ("compile_", "node_", "route", "limits_", "ready_")
RECORDED = {
    entry["name"]: entry["expected_error"]
    for entry in load_vectors("composition_errors.json")
    if entry["name"].startswith(PREFIXES)
}


def test_every_compile_error_vector_is_tested() -> None:
    assert FAULTY_GRAPHS.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", FAULTY_GRAPHS)
def test_compile_error_vector_reports_recorded_kind(name: str) -> None:
    """Scenarios 10 to 18, 22, 24, 26: the `compile_*` and part error vectors."""
    owner, _, kind = RECORDED[name].rpartition(".")
    with refused(kind) as raised:
        _compile(FAULTY_GRAPHS[name])
    assert raised.value.owner == (owner or "GraphCompile")


def test_missing_entry_node_is_refused() -> None:
    """Scenario 12."""
    with refused("MissingEntryNode"):
        _compile(graph([end("a")], ["b"]))


def test_node_without_path_to_a_boundary_is_refused() -> None:
    """Scenario 15: some path to a terminal or a wait is needed."""
    with refused("NoBoundaryPath") as raised:
        _compile(graph([node("a", ["b"]), node("b", ["a"])], ["a"]))
    assert len(raised.value.issues) == 2


def test_node_with_one_of_two_paths_to_a_boundary_passes() -> None:
    """Scenario 15: "some path", not every path."""
    loop = [node("a", ["b", "c"]), node("b", ["b", "c"]), end("c")]
    assert _compile(graph(loop, ["a"])).entry_nodes == ("a",)


def test_wait_to_self_is_a_boundary() -> None:
    """Scenario 16."""
    assert _compile(graph([node("a", wait_to=["a"])], ["a"])).node("a").wait_to == (
        "a",
    )


def test_same_node_twice_with_routes_reports_the_route() -> None:
    """Scenario 19: routes are claimed before the node id is."""
    routed = node("a", routes={"r": ["b"]})
    with refused("DuplicateRoute") as raised:
        _compile(graph([routed, routed, end("b")], ["a"]))
    assert "DuplicateNode" in [issue.kind for issue in raised.value.issues]


def _fan(count: int) -> Json:
    ids = [f"n{number:04}" for number in range(count)]
    nodes = [node(ids[0], ids[1:1001]), node(ids[1], ids[1001:])]
    return graph([*nodes, *map(end, ids[2:])], [ids[0]], parallelism=1024)


def test_1024_nodes_pass() -> None:
    """Scenario 20."""
    assert len(_compile(_fan(1024)).nodes) == 1024


def test_1025_nodes_are_refused() -> None:
    """Scenario 20."""
    with refused("TooManyNodes"):
        _compile(_fan(1025))


def test_endless_nodes_are_refused_without_reading_them() -> None:
    """Section 1.4: a limit is checked before the work it bounds."""
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield end(f"n{read}")

    with refused("TooManyNodes"):
        _compile({**chain("a", "b"), "nodes": endless()})
    assert read == 1025


def test_256_routes_on_a_node_pass() -> None:
    """Scenario 21."""
    many = {f"r{number}": ["b"] for number in range(256)}
    sample = graph([node("a", routes=many), end("b")], ["a"])
    assert len(_compile(sample).node("a").routes) == 256


def test_257_routes_on_a_node_are_refused() -> None:
    """Scenario 21."""
    many = [GraphRoute(f"r{number}", ["b"]) for number in range(257)]
    with refused("TooMany") as raised:
        GraphNode("a", routes=many)
    assert raised.value.owner == "GraphRoutes"


def test_1025_ids_in_a_ready_set_are_refused() -> None:
    """Section 1.4; exactly 1,024 pass."""
    ids = [f"n{number}" for number in range(1025)]
    assert len(ready_set(ids[1:])) == 1024
    with refused("TooMany") as raised:
        ready_set(ids)
    assert raised.value.owner == "ReadyNodes"


def test_text_in_place_of_a_set_is_refused() -> None:
    with refused("WrongType"):
        GraphNode("a", continue_to="bc")


def _definition_of_size(subject_length: int) -> Json:
    """Nodes with long ids whose successors fill the definition up to the subject."""
    ids = [f"{number:04}".ljust(128, "x") for number in range(1024)]
    filled = [node(node_id, ids[:13]) for node_id in ids[1:]]
    nodes = [node(ids[0], ids), *filled]
    nodes[-1]["terminal"] = True
    sample = graph(nodes, [ids[0]], parallelism=1024)
    identity = sample["identity"]
    identity["owner"] = {**identity["owner"], "subject": "s" * subject_length}
    return sample


def test_definition_of_exactly_2_mib_passes() -> None:
    """Scenario 23: exactly 2,097,152 bytes pass, one more is refused."""
    room = MAXIMUM_DEFINITION_BYTES - _size(_definition_of_size(1))
    wide, rest = divmod(room, 131)
    sample = _definition_of_size(1 + rest)
    _widen(sample, wide)
    assert len(_compile(sample).canonical_bytes()) == MAXIMUM_DEFINITION_BYTES
    sample["identity"]["owner"]["subject"] += "s"
    with refused("DefinitionTooLarge"):
        _compile(sample)


def _widen(sample: Json, count: int) -> None:
    """Add `count` successors, of 131 bytes each in the definition."""
    ids = sample["nodes"][0]["continue_to"]
    for number in range(count):
        successors = sample["nodes"][1 + number % 1023]["continue_to"]
        successors.append(ids[len(successors)])


def _size(sample: Json) -> int:
    return len(_compile(sample).canonical_bytes())


@pytest.mark.parametrize(
    ("supersteps", "parallelism", "kind"),
    [
        (0, 1, "ZeroSupersteps"),
        (2**63, 1, "SuperstepsAboveFrameworkMaximum"),
        (1, 0, "ZeroParallelism"),
        (1, 1025, "ParallelismAboveFrameworkMaximum"),
        (0, 0, "ZeroSupersteps"),
    ],
)
def test_limits_out_of_bounds_are_refused(
    supersteps: int, parallelism: int, kind: str
) -> None:
    """Scenario 24."""
    with refused(kind):
        GraphLimits(maximum_supersteps=supersteps, maximum_parallelism=parallelism)


def test_limits_at_their_bounds_pass() -> None:
    """Scenario 24: the largest step count keeps all its digits in the JSON form."""
    sample = chain("a", "b", supersteps=2**63 - 1, parallelism=1024)
    definition = GraphDefinition.from_dict(_compile(sample).to_dict())
    assert definition.limits.maximum_supersteps == 2**63 - 1


def test_node_with_empty_wait_is_refused() -> None:
    """Scenario 26."""
    with refused("EmptyWaitSuccessors"):
        GraphNode("a", wait_to=[])


def test_node_may_combine_all_ways_out() -> None:
    """Section 1.5: a node may combine continue, routes, wait and terminal."""
    both = node("a", ["b"], routes={"r": ["b"]}, wait_to=["b"], terminal=True)
    assert _compile(graph([both, end("b")], ["a"])).node("a").terminal


def test_compile_reports_every_broken_rule_at_once() -> None:
    """The first issue is the reference's; the message shows the others as well."""
    sample = graph(
        [node("a", ["x"]), end("b"), node("c", ["c"])], ["a", "y"], parallelism=1
    )
    with pytest.raises(GraphError) as raised:
        _compile(sample)
    kinds = [issue.kind for issue in raised.value.issues]
    assert kinds == [
        "ParallelismExceeded",
        "MissingEntryNode",
        "MissingSuccessorNode",
        "UnreachableNode",
        "UnreachableNode",
        "NoBoundaryPath",
    ]
    assert str(raised.value).count("also: ") == 5


def test_compile_reports_every_faulty_part_at_once() -> None:
    sample = graph([end("a")], ["a"], supersteps=0)
    sample["identity"] = {
        "owner": {"issuer": "http://x", "subject": ""},
        "capability": {"name": "n", "version": "1"},
    }
    with pytest.raises(GraphError) as raised:
        _compile(sample)
    owners = [issue.owner for issue in raised.value.issues]
    assert owners == ["IssuerId", "SubjectId", "Version", "Limits"]


def _compile(sample: Json) -> GraphDefinition:
    return GraphDefinition.compile(**sample)
