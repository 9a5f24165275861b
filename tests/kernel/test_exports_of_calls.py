"""How loops and calls are exported: as one box with its bound, and expanded."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from project.examples import review
from stateknot import START, GraphBuilder
from stateknot.kernel.exports.topology import Topology, TopologyCall


class Count(BaseModel):
    n: int = 0


def skip(_count: Count) -> None: ...


def choose(_count: Count) -> str:
    return "retry"


def looping(bound: int | None = 3) -> Any:
    """A builder that calls a body of two nodes."""
    body = GraphBuilder("tests.body", state=Count).add_node("work", skip)
    body.add_node("decide", skip).add_edge(START, "work").add_edge("work", "decide")
    body.add_conditional_edges("decide", choose, {"retry": "again", "accept": "done"})
    body.add_port("again").add_port("done")
    parent = GraphBuilder("tests.loop", state=Count).add_node("finish", skip)
    parent.add_node("exhausted", skip).add_edge(START, "review")
    return parent.add_subgraph_call(
        "review",
        body,
        repeat="again" if bound else None,
        maximum_iterations=bound,
        returns={"again": "exhausted", "done": "finish"},
    )


def test_call_in_a_builder_is_a_box_with_its_bound() -> None:
    topology = looping().topology()
    assert topology.calls == (
        TopologyCall(
            site="review", body="tests.body", maximum_iterations=3, repeat="again"
        ),
    )
    label = '"review: tests.body, at most 3 times"'
    assert f"n_review[[{label}]]" in looping().to_mermaid()
    box = f'"review" [label={label}, shape=box, peripheries=2];'
    assert box in looping().to_dot()


def test_single_call_says_no_bound() -> None:
    assert 'n_review[["review: tests.body"]]' in looping(None).to_mermaid()


@pytest.mark.parametrize(
    "graph", [looping().compile(), review.build_graph(3)], ids=["builder", "closed"]
)
def test_authored_view_of_a_composed_graph_has_the_call_as_one_node(graph: Any) -> None:
    """Read back from the sources, whichever form it was written in."""
    topology = graph.authored().topology()
    assert [node.id for node in topology.nodes] == ["exhausted", "finish", "review"]
    assert topology.entry == ("review",)
    (call,) = topology.calls
    assert (call.site, call.maximum_iterations) == ("review", 3)
    (choice,) = topology.conditional_edges
    assert choice.source == "review"
    assert set(choice.routes.values()) == {("exhausted",), ("finish",)}
    drawn = graph.authored().to_mermaid()
    assert f"review: {call.body}, at most 3 times" in drawn
    assert "skc-" not in graph.authored().to_json()


@pytest.mark.parametrize(
    "graph", [looping().compile(), review.build_graph(3)], ids=["builder", "closed"]
)
def test_expanded_view_has_a_box_for_each_iteration(graph: Any) -> None:
    """The body's own names are what people read."""
    mermaid, dot = graph.to_mermaid(), graph.to_dot()
    for iteration in range(3):
        title = f'"review, {iteration + 1} of 3"'
        assert f"subgraph box_review_{iteration}[{title}]" in mermaid
        assert f'subgraph "cluster_review_{iteration}" {{ label={title};' in dot
    assert mermaid.count('["work"]') == 3
    assert mermaid.count("    end\n") == 3
    assert dot.count('label="decide"') == 3


def test_expanded_json_says_where_each_node_comes_from() -> None:
    topology = looping().compile().topology()
    found = sorted(
        (node.source["iteration"], node.source["node_id"], node.source["call_site"])
        for node in topology.nodes
        if node.source
    )
    assert found == [
        (iteration, node, "review")
        for iteration in range(3)
        for node in ("decide", "work")
    ]


@pytest.mark.parametrize("view", [looping().compile(), looping()])
def test_json_of_calls_reads_back_equal(view: Any) -> None:
    for exported in (view, view.authored()):
        topology = exported.topology()
        assert Topology.from_json(exported.to_json()) == topology


def test_call_that_is_entered_again_has_an_edge_to_itself() -> None:
    """The cycle around a call is its author's, not the loop's own."""
    body = GraphBuilder("tests.body", state=Count).add_node("work", skip)
    body.add_edge(START, "work").add_edge("work", "done").add_port("done")
    parent = GraphBuilder("tests.cycle", state=Count).add_node("check", skip)
    parent.add_subgraph_call("call", body, returns={"done": "check"})
    parent.add_edge(START, "call").add_node("end", skip)
    parent.add_conditional_edges("check", choose, {"retry": "call", "accept": "end"})
    topology = parent.compile().authored().topology()
    assert topology.edges == (("call", "check"),)
    (choice,) = topology.conditional_edges
    assert choice.routes == {"accept": ("end",), "retry": ("call",)}


def test_graph_without_calls_is_its_own_authored_view() -> None:
    graph = GraphBuilder("tests.plain", state=Count).add_node("only", skip)
    compiled = graph.add_edge(START, "only").compile()
    assert compiled.authored().to_json() == compiled.to_json()


def test_authored_view_of_a_call_of_a_call_has_each_route_once() -> None:
    """By its author's label; the ids generated on both levels are left out."""
    body = GraphBuilder("tests.body", state=Count).add_node("work", skip)
    body.add_edge(START, "work")
    body.add_conditional_edges("work", choose, {"retry": "again", "accept": "done"})
    middle = GraphBuilder("tests.middle", state=Count).add_edge(START, "inner")
    middle.add_subgraph_call(
        "inner",
        body.add_port("again").add_port("done"),
        repeat="again",
        maximum_iterations=2,
        returns={"again": "again", "done": "done"},
    )
    outer = GraphBuilder("tests.outer", state=Count).add_edge(START, "review")
    outer.add_node("exhausted", skip).add_node("finish", skip)
    outer.add_subgraph_call(
        "review",
        middle.add_port("again").add_port("done"),
        repeat="again",
        maximum_iterations=2,
        returns={"again": "exhausted", "done": "finish"},
    )
    authored = outer.compile().authored()
    (choice,) = authored.topology().conditional_edges
    assert choice.routes == {"accept": ("finish",), "retry": ("exhausted",)}
    assert "skr-" not in authored.to_json() + authored.to_mermaid() + authored.to_dot()
