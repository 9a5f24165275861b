"""Pictures of graphs: what is drawn where, and that the text of it is safe."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.vocabulary import END, START
from stateknot.pictures import (
    NodeState,
    Sketch,
    SketchEdge,
    SketchNode,
    merge_alike,
    render_svg,
    sketch_definition,
)
from stateknot.pictures.alike import MOST_DRAWN
from stateknot.pictures.compound import draw
from stateknot.pictures.layers import WIDEST, assign_layers, find_back_edges
from stateknot.pictures.places import MOST_LANES, Size, place
from tests.recorded_graphs import find_recorded_names, read_recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.pictures.compound import Box

NODES = st.integers(1, 14)


def sketch_of(
    edges: Sequence[tuple[str, str]], groups: dict[str, str] | None = None
) -> Sketch:
    boxes = groups or {}
    names = dict.fromkeys([START, *(end for edge in edges for end in edge)])
    nodes = {n: SketchNode(id=n, label=n, group=boxes.get(n, "")) for n in names}
    arrows = tuple(SketchEdge(source=s, target=t) for s, t in dict.fromkeys(edges))
    return Sketch(nodes=nodes, edges=arrows, groups={g: g for g in boxes.values()})


def overlap(one: Box, other: Box) -> bool:
    return all(
        one.corner[axis] < other.corner[axis] + other.size[axis]
        and other.corner[axis] < one.corner[axis] + one.size[axis]
        for axis in (0, 1)
    )


def holds(box: Box, inner: Box) -> bool:
    return all(
        box.corner[axis] <= inner.corner[axis]
        and inner.corner[axis] + inner.size[axis] <= box.corner[axis] + box.size[axis]
        for axis in (0, 1)
    )


@st.composite
def graphs(draw_: st.DrawFn) -> Sketch:
    """Any arrows at all, loops and islands included, some nodes in two boxes."""
    ends = st.integers(0, draw_(NODES))
    edges = draw_(st.lists(st.tuples(ends, ends), max_size=40))
    boxed = draw_(st.dictionaries(ends, st.sampled_from("pq"), max_size=8))
    names = [(f"n{s}", f"n{t}") for s, t in edges]
    return sketch_of(names, {f"n{node}": box for node, box in boxed.items()})


@given(graphs())
def test_no_node_covers_another_whatever_the_arrows(sketch: Sketch) -> None:
    drawing = draw(sketch)
    assert set(drawing.nodes) == set(sketch.nodes)
    for one, other in combinations(drawing.nodes.values(), 2):
        assert not overlap(one, other)


@given(graphs())
def test_box_holds_its_nodes_alone(sketch: Sketch) -> None:
    drawing = draw(sketch)
    for one, other in combinations(drawing.groups.values(), 2):
        assert not overlap(one, other)
    for group, box in drawing.groups.items():
        for node, place_ in drawing.nodes.items():
            is_member = sketch.nodes[node].group == group
            assert holds(box, place_) if is_member else not overlap(box, place_)


@given(graphs())
def test_picture_is_well_formed_whatever_the_arrows(sketch: Sketch) -> None:
    svg = render_svg(sketch, title="t", describe="d", key="k")
    root = ElementTree.fromstring(svg)  # noqa: S314 - written here
    lines = [e for e in root.iter() if "sk-line" in e.get("class", "")]
    assert len(lines) == len(sketch.edges)


def test_rows_follow_the_longest_way() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    assert assign_layers(list("abcd"), edges) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_arrow_that_closes_a_loop_leads_back() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "c")]
    assert find_back_edges("abc", edges) == {("c", "a")}
    assert "sk-edge-back" in render_svg(
        sketch_of(edges), title="t", describe="d", key="k"
    )


def test_long_arrow_goes_around_the_nodes_that_it_passes() -> None:
    sizes = dict.fromkeys("abc", Size(100, 40))
    placement = place(sizes, [("a", "b"), ("b", "c"), ("a", "c")])
    left = placement.corners["b"].x
    lanes = placement.lanes["a", "c"]
    assert lanes
    assert not any(left <= point.x <= left + 100 for point in lanes)


def test_wide_row_is_broken() -> None:
    names = [f"n{number}" for number in range(3 * WIDEST)]
    layers = assign_layers(["a", *names], [("a", name) for name in names])
    assert sorted(set(layers.values())) == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [100, 1000])
def test_cost_of_long_arrows_is_bounded(count: int) -> None:
    """A chain whose every node leads to the end: arrows as long as the picture."""
    names = [f"n{number}" for number in range(count)]
    edges = [*pairwise(names), *((n, "end") for n in names)]
    placement = place(dict.fromkeys([*names, "end"], Size(10, 10)), edges)
    assert sum(map(len, placement.lanes.values())) <= 2 * MOST_LANES
    assert len(placement.corners) == count + 1


@pytest.mark.parametrize("state", NodeState)
def test_state_is_told_by_class_shape_and_word(state: NodeState) -> None:
    """Colour alone would leave out those who do not see it."""
    node = SketchNode(id="n", label="n", state=state)
    svg = render_svg(Sketch(nodes={"n": node}), title="t", describe="d", key="k")
    assert f"sk-node-{state}" in svg
    assert "sk-shape" in svg
    assert re.search(r'class="sk-word"[^>]*>[a-z ]+<', svg)


def test_text_is_escaped_and_nothing_is_inline() -> None:
    """The strict policy drops styles and scripts; names are any text."""
    node = SketchNode(id="n", label='<script>"&', group="b", note="<i>")
    edge = SketchEdge(source="n", target="n", label="<b>")
    sketch = Sketch(nodes={"n": node}, edges=(edge,), groups={"b": "<u>"})
    svg = render_svg(sketch, title="<t>", describe="<d>", key="k")
    for tag in ("<script", "<i>", "<b>", "<u>", "<t>", "<d>", "style"):
        assert tag not in svg


def test_picture_is_one_image_with_a_name_and_a_text() -> None:
    svg = render_svg(sketch_of([("a", "b")]), title="Name", describe="Text", key="k")
    assert 'role="img"' in svg
    assert 'aria-labelledby="k-title k-desc"' in svg
    assert '<title id="k-title">Name</title><desc id="k-desc">Text</desc>' in svg


def test_definition_is_read_with_every_way_out() -> None:
    """Edges, routes, joins, commands, answers and ends, each pair once."""
    plain = {"routes": [], "terminal": False}
    definition = {
        "entry_nodes": ["a"],
        "nodes": [
            {
                "node_id": "a",
                "routes": [
                    {"route_id": "x", "successors": ["b"]},
                    {"route_id": "y", "successors": ["b"]},
                ],
                "terminal": False,
            },
            {**plain, "node_id": "b", "continue_to": ["c"], "wait_to": ["a"]},
            {**plain, "node_id": "c", "terminal": True},
        ],
        "waiting_edges": {"c": ["a"]},
        "command_nodes": {"c": ["a", "elsewhere"]},
        "end_routes": {"a": ["stop"]},
    }
    sketch = sketch_definition(definition)
    found = {(e.source, e.target): e for e in sketch.edges}
    assert set(found) == {
        *((START, "a"), ("a", "b"), ("b", "c"), ("b", "a")),
        *(("c", END), ("a", "c"), ("c", "a"), ("a", END)),
    }
    assert found["a", "b"].label == "x, y"
    assert found["a", END].label == "stop"
    assert found["a", "c"].is_join
    assert found["b", "a"].is_quiet


def test_composed_node_has_its_authors_name_and_a_box() -> None:
    definition = {
        "entry_nodes": ["g1"],
        "nodes": [
            {
                "node_id": "g1",
                "routes": [{"route_id": "r1", "successors": ["end"]}],
                "terminal": False,
            },
            {"node_id": "end", "routes": [], "terminal": True},
        ],
    }
    source = {
        "node_id": "work",
        "call_site": "review",
        "iteration": 1,
        "routes": {"accept": "r1"},
    }
    sketch = sketch_definition(definition, {"g1": source})
    assert sketch.nodes["g1"].label == "work"
    assert sketch.groups[sketch.nodes["g1"].group] == "review 2"
    assert "accept" in [edge.label for edge in sketch.edges]


def states_of(sketch: Sketch, states: Sequence[NodeState]) -> Sketch:
    nodes = {
        node.id: replace(node, state=states[i % len(states)])
        for i, node in enumerate(sketch.nodes.values())
    }
    return replace(sketch, nodes=nodes)


@given(graphs(), st.lists(st.sampled_from(NodeState), min_size=1, max_size=3))
def test_nodes_drawn_as_one_have_one_state_and_box(
    sketch: Sketch, states: list[NodeState]
) -> None:
    """And no arrow is lost: each has one between those that stand for its ends."""
    sketch = states_of(sketch, states)
    merged = merge_alike(sketch, most=3)
    kinds = {(node.group, node.state) for node in sketch.nodes.values()}
    assert {(node.group, node.state) for node in merged.nodes.values()} == kinds
    assert set(merged.nodes) <= set(sketch.nodes)
    assert bool(merged.edges) == bool(sketch.edges)
    ends = {end for edge in merged.edges for end in (edge.source, edge.target)}
    assert ends <= set(merged.nodes)
    render_svg(merged, title="t", describe="d", key="k")


def test_few_nodes_are_drawn_each_by_itself() -> None:
    sketch = sketch_of([("a", "b"), ("a", "c")])
    assert merge_alike(sketch) is sketch


def test_fan_out_of_a_thousand_is_one_box_and_its_failure_another() -> None:
    names = [f"part{n}" for n in range(1_000)]
    edges = [("split", n) for n in names] + [(n, "join") for n in names]
    sketch = sketch_of(edges)
    failed = replace(sketch.nodes["part7"], state=NodeState.FAILED)
    merged = merge_alike(replace(sketch, nodes={**sketch.nodes, "part7": failed}))
    labels = {node.label for node in merged.nodes.values()}
    assert labels == {START, "split", "part… (999)", "part7", "join"}
    assert {(e.source, e.target) for e in merged.edges} == {
        ("split", "part0"),
        ("split", "part7"),
        ("part0", "join"),
        ("part7", "join"),
    }


@pytest.mark.parametrize("name", find_recorded_names())
def test_recorded_workflow_is_drawn_in_few_boxes(name: str) -> None:
    drawn = read_recorded(name)
    edges = [(f"task{parent}", f"task{child}") for parent, child in drawn.edges]
    merged = merge_alike(sketch_of(edges))
    assert len(merged.nodes) <= MOST_DRAWN
