"""What a graph exports: sorted data, JSON that reads back, text that draws."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot.errors import SerializationError
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.exports.build import build_topology
from stateknot.kernel.exports.drawing import mermaid_id, to_dot, to_mermaid
from stateknot.kernel.exports.shape import shape_of
from stateknot.kernel.exports.topology import Topology, TopologyJoin
from stateknot.kernel.reducers import append
from stateknot.kernel.retry import RetryPolicy
from stateknot.kernel.vocabulary import END, START


class Log(BaseModel):
    log: Annotated[list[str], append] = []


def nothing(_state: Any) -> None:
    return None


def choose(_state: Any) -> str:
    return "yes"


class Child:
    """A handler that stands for a graph, as subgraph nodes do."""

    kind = "subgraph"
    memory = "carry"

    def __call__(self, state: Any) -> None: ...


def builder_of(*nodes: str) -> BlueprintBuilder:
    builder = BlueprintBuilder("tests.graph", state=Log, name="A graph")
    for node in nodes:
        builder.add_node(node, nothing)
    return builder


def rich() -> BlueprintBuilder:
    """Every kind of edge and marker."""
    builder = builder_of("b", "a", "join", "end")
    builder.add_node("sub", Child(), metadata={"interrupt": True, "team": "ops"})
    builder.add_node("slow", nothing, retry=RetryPolicy(max_attempts=2), timeout=1.5)
    builder.add_command_node("jump", nothing, destinations=["end", "a"])
    builder.add_edge(START, ["b", "a"]).add_waiting_edge(["b", "a"], "join")
    builder.add_barrier_relief("b", "a", "join").add_edge("join", "sub")
    builder.add_conditional_edges("sub", choose, {"yes": "slow", "no": END})
    builder.add_edge("slow", "jump").add_edge("end", END)
    return builder.with_recursion_limit(9).with_parallel(4).with_node_timeout(2)


def exported(builder: BlueprintBuilder) -> Topology:
    return build_topology(shape_of(builder.blueprint()))


def routing(topology: Topology) -> dict[str, str]:
    return {node.id: node.routing for node in topology.nodes}


def test_nodes_are_sorted_and_say_how_they_lead_on() -> None:
    """Scenario 170, D22: a node whose only way on is a join is not a dead end."""
    assert routing(exported(rich())) == {
        "a": "waiting",
        "b": "waiting",
        "end": "terminal",
        "join": "static",
        "jump": "command",
        "slow": "static",
        "sub": "conditional",
    }


def test_entry_and_finish_are_lifted_from_the_edges() -> None:
    """Scenario 170: START and END are no nodes of the export."""
    topology = exported(rich())
    assert (topology.entry, topology.finish) == (("a", "b"), ("end", "sub"))
    assert topology.edges == (("join", "sub"), ("slow", "jump"))


def test_routes_joins_and_reliefs_are_told_apart() -> None:
    """Scenario 170."""
    topology = exported(rich())
    (routes,) = topology.conditional_edges
    assert (routes.source, routes.router) == ("sub", "choose")
    assert routes.routes == {"no": (END,), "yes": ("slow",)}
    assert topology.waiting_edges == (TopologyJoin(target="join", sources=("a", "b")),)
    assert [(r.source, r.relief, r.barrier) for r in topology.reliefs] == [
        ("b", "a", "join")
    ]


def test_markers_and_policies_of_nodes() -> None:
    """Scenario 170; SG-08: whether a child remembers is shown."""
    nodes = {node.id: node for node in exported(rich()).nodes}
    assert (nodes["sub"].kind, nodes["sub"].markers) == (
        "subgraph",
        ("interrupt", "subgraph"),
    )
    assert nodes["sub"].policy == {"memory": "carry"}
    assert nodes["sub"].metadata == {"team": "ops"}
    assert nodes["slow"].policy == {"timeout_ms": 1500, "max_attempts": 2}
    assert nodes["jump"].goto == ("a", "end")


def test_policy_of_the_graph() -> None:
    assert exported(rich()).policy == {
        "recursion_limit": 9,
        "parallel": True,
        "max_concurrency": 4,
        "node_timeout_ms": 2000,
    }


def test_builder_and_compiled_graph_export_the_same() -> None:
    """Section 8.5."""
    assert rich().topology() == exported(rich())


def test_json_reads_back_equal() -> None:
    """Scenario 170: what is empty is left out, and comes back empty."""
    topology = exported(rich())
    text = topology.to_json()
    assert Topology.from_json(text) == topology
    assert '"validation"' not in text
    assert topology.to_json() == exported(rich()).to_json()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"graph_id": "g"}', '{"graph_id": "g", "name": "n", "x": 1}']
)
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(SerializationError, match="no topology"):
        Topology.from_json(text)


def test_dangling_route_and_orphan_are_told() -> None:
    """Scenario 171: an error that would not compile, and a warning that does."""
    builder = builder_of("a", "orphan").add_edge(START, "a")
    builder.add_conditional_edges("a", choose, {"yes": "nowhere"})
    found = builder.topology().validation
    assert not found.is_ok
    assert ["nowhere" in error for error in found.errors] == [True]
    assert found.warnings == ("node 'orphan' cannot be reached from START",)


def test_graph_without_an_entry_is_an_error() -> None:
    found = builder_of("a").topology().validation
    assert any("START" in error for error in found.errors)


def test_declared_goto_reaches_its_destination() -> None:
    builder = builder_of("there").add_edge(START, "jump")
    builder.add_command_node("jump", nothing, destinations=["there"])
    assert builder.topology().validation.warnings == ()


def test_graph_that_compiles_has_no_errors() -> None:
    found = exported(rich()).validation
    assert (found.is_ok, found.errors, found.warnings) == (True, (), ())


def test_mermaid_draws_every_edge() -> None:
    """Scenario 170: barriers and gotos are dotted, routes labelled."""
    lines = to_mermaid(exported(rich())).splitlines()
    assert lines[0] == "flowchart TD"
    for line in (
        '    n_sub[["sub"]]',
        "    start_ --> n_a",
        "    n_join --> n_sub",
        '    n_sub -->|"yes"| n_slow',
        '    n_sub -->|"no"| end_',
        '    n_a -.->|"barrier"| n_join',
        '    n_b -.->|"relief of a"| n_join',
        '    n_jump -.->|"goto"| n_end',
        "    n_end --> end_",
        "    class n_sub subgraph",
        "    class n_sub interrupt",
    ):
        assert line in lines
    assert "deferred" not in "\n".join(lines)


def test_picture_is_the_same_whatever_the_order_of_adding() -> None:
    """Scenario 170: deterministic."""
    one = builder_of("a", "b", "c").add_edge(START, ["b", "a"]).add_edge("a", "c")
    two = builder_of("c", "b", "a").add_edge("a", "c").add_edge(START, ["a", "b"])
    assert one.to_mermaid() == two.to_mermaid()
    assert one.to_dot() == two.to_dot()


def test_node_called_end_is_no_keyword() -> None:
    """It is drawn, beside the END of the graph, in both languages."""
    graph = builder_of("end", "start_").add_sequence(START, "start_", "end")
    text = graph.to_mermaid()
    assert 'n_end["end"]' in text
    assert "n_start__ --> n_end" in text
    assert not re.search(r"(^|\s)end(\s|$)", text)
    assert '"start_" -> "end";' in graph.to_dot()
    assert '"__start__" -> "start_";' in graph.to_dot()


def test_ids_that_look_alike_stay_apart() -> None:
    """The reference draws `a-b`, `a_b` and `a.b` as one node."""
    names = ["a-b", "a_b", "a.b", "a_2d_b", "a__b", "a", "A"]
    assert len({mermaid_id(name) for name in names}) == len(names)


def test_quotes_in_labels_are_escaped() -> None:
    builder = builder_of("a", "b").add_edge(START, "a")
    builder.add_conditional_edges("a", choose, {'say "yes" #1': "b"})
    assert '|"say #quot;yes#quot; #35;1"|' in builder.to_mermaid()
    assert 'label="say \\"yes\\" #1"' in builder.to_dot()


def test_dot_quotes_every_name() -> None:
    text = to_dot(exported(rich()))
    assert text.startswith('digraph "tests.graph" {\n')
    assert '    "sub" [shape=box, peripheries=2];' in text
    assert '    "sub" -> "slow" [label="yes"];' in text
    assert '    "a" -> "join" [label="barrier", style=dashed];' in text


def test_thousand_nodes_are_exported_whole() -> None:
    """A chain of joins, wide and long."""
    builder = builder_of(*(f"n{i}" for i in range(1_000))).add_edge(START, "n0")
    for i in range(1, 1_000):
        sources = [f"n{j}" for j in range(max(0, i - 4), i)]
        builder.add_waiting_edge(sources, f"n{i}")
    blueprint = builder.blueprint()
    topology = build_topology(shape_of(blueprint))
    assert topology.to_json().count('"id": "n') == 1_000
    assert to_mermaid(topology).count("barrier") > 3_000
    assert to_dot(topology).count("n999") > 1


@pytest.mark.parametrize("kind", ["transactional", "at_most_once"])
def test_node_that_must_not_run_twice_says_so(kind: str) -> None:
    builder = builder_of().add_node("pay", nothing, **{kind: True})
    (node,) = exported(builder.add_edge(START, "pay")).nodes
    assert node.policy == {"once": kind}
