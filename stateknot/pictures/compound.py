"""Boxes in a picture: each is placed by itself, then stands as one node in the whole.

So boxes never overlap, whatever leads into and out of them. An arrow between a node in
a box and one outside goes straight from the box's edge to the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stateknot.kernel.vocabulary import END, START
from stateknot.pictures.places import NOTHING, Placement, Point, Size, place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stateknot.pictures.layers import Pair
    from stateknot.pictures.sketch import Sketch, SketchNode

NODE = Size(178.0, 46.0)
TERMINAL = Size(84.0, 28.0)
PADDING = 16.0
TITLE = 22.0


class Box(NamedTuple):
    """A rectangle by its corner and size."""

    corner: Point
    size: Size


@dataclass(slots=True)
class Drawing:
    """Where everything stands. `ways` are the points of each arrow from its upper to
    its lower end, without the ends; `back` are the arrows that lead up."""

    nodes: dict[str, Box] = field(default_factory=dict)
    groups: dict[str, Box] = field(default_factory=dict)
    ways: dict[Pair, list[Point]] = field(default_factory=dict)
    back: set[Pair] = field(default_factory=set)
    size: Size = NOTHING


def size_of(node: SketchNode) -> Size:
    """How large a node is drawn."""
    return TERMINAL if node.id in (START, END) else NODE


def draw(sketch: Sketch) -> Drawing:
    """Place every node, box and arrow of `sketch`."""
    inner, outer = _split(sketch)
    drawing = Drawing()
    sizes: dict[str, Size] = {}
    placed: dict[str, Placement] = {}
    for node in sketch.nodes.values():
        if not node.group:
            sizes[node.id] = size_of(node)
        elif node.group not in placed:
            members = _members(sketch, node.group)
            placed[node.group] = place(members, inner.get(node.group, []))
            sizes[_key(node.group)] = _around(placed[node.group].size)
    whole = place(sizes, list(outer.values()))
    _put(drawing, whole, Point(0, 0), sizes)
    for group, placement in placed.items():
        corner = whole.corners[_key(group)]
        drawing.groups[group] = Box(corner, sizes[_key(group)])
        inside = Point(corner.x + PADDING, corner.y + PADDING + TITLE)
        _put(drawing, placement, inside, _members(sketch, group))
    _join_outer(drawing, whole, outer)
    drawing.size = whole.size
    return drawing


def _key(group: str) -> str:
    return f"group {group}\0"


def _members(sketch: Sketch, group: str) -> dict[str, Size]:
    nodes = sketch.nodes.values()
    return {node.id: size_of(node) for node in nodes if node.group == group}


def _around(size: Size) -> Size:
    return Size(size.width + 2 * PADDING, size.height + 2 * PADDING + TITLE)


def _split(sketch: Sketch) -> tuple[dict[str, list[Pair]], dict[Pair, Pair]]:
    """Arrows within each box, and of all others the ends that the whole sees."""
    inner: dict[str, list[Pair]] = {}
    outer: dict[Pair, Pair] = {}
    for edge in sketch.edges:
        pair = (edge.source, edge.target)
        one, other = (sketch.nodes[end].group for end in pair)
        if one and one == other:
            inner.setdefault(one, []).append(pair)
        else:
            source, target = pair
            outer[pair] = (
                _key(one) if one else source,
                _key(other) if other else target,
            )
    return inner, outer


def _put(
    drawing: Drawing, placement: Placement, at: Point, sizes: Mapping[str, Size]
) -> None:
    for node, corner in placement.corners.items():
        if not node.endswith("\0"):
            moved = Point(corner.x + at.x, corner.y + at.y)
            drawing.nodes[node] = Box(moved, sizes[node])
    for pair, lanes in placement.lanes.items():
        drawing.ways[pair] = _moved(lanes, at)
    drawing.back |= placement.back


def _moved(points: Sequence[Point], at: Point) -> list[Point]:
    return [Point(p.x + at.x, p.y + at.y) for p in points]


def _join_outer(drawing: Drawing, whole: Placement, outer: Mapping[Pair, Pair]) -> None:
    """Give the arrows that touch a box the lanes of those that the whole saw."""
    for pair, seen in outer.items():
        drawing.ways[pair] = list(whole.lanes.get(seen, ()))
        if seen in whole.back:
            drawing.back.add(pair)
