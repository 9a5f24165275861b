"""The arrows of a picture: where they touch nodes, their curves, heads and labels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from django.utils.html import escape

from stateknot.pictures.places import GAP, Point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stateknot.pictures.compound import Box, Drawing
    from stateknot.pictures.layers import Pair
    from stateknot.pictures.sketch import Sketch, SketchEdge

LONGEST_LABEL = 20
PORTS = 0.7
"""Share of a node's side along which its arrows are spread."""
HEAD = 7.0


def cut(text: str, longest: int) -> str:
    """`text`, no longer than `longest`."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def render_arrows(sketch: Sketch, drawing: Drawing) -> Iterator[str]:
    """Every arrow and label as SVG; lines first, so that no line crosses a label."""
    ways = _ways(sketch, drawing)
    for edge in sketch.edges:
        pair = (edge.source, edge.target)
        is_back = pair in drawing.back or edge.source == edge.target
        points = _loop(drawing.nodes[edge.source]) if pair not in ways else ways[pair]
        if pair in drawing.back:
            points = points[::-1]
        yield _line(edge, points, is_back=is_back)
    for edge in sketch.edges:
        pair = (edge.source, edge.target)
        if edge.label and pair in ways:
            yield _label(edge.label, ways[pair], at_end=pair in drawing.back)
        elif edge.label:
            box = drawing.nodes[edge.source]
            x = box.corner.x + box.size.width - 6
            yield _text_at(edge.label, Point(x, box.corner.y - 6))


def _ways(sketch: Sketch, drawing: Drawing) -> dict[Pair, list[Point]]:
    """The points of every arrow from its upper to its lower end; none to itself."""
    ends: dict[Pair, Pair] = {}
    below: dict[str, list[Pair]] = {}
    above: dict[str, list[Pair]] = {}
    for edge in sketch.edges:
        pair = (edge.source, edge.target)
        if edge.source == edge.target:
            continue
        ends[pair] = pair[::-1] if pair in drawing.back else pair
        below.setdefault(ends[pair][0], []).append(pair)
        above.setdefault(ends[pair][1], []).append(pair)
    tops: dict[Pair, Point] = {}
    bottoms: dict[Pair, Point] = {}
    for node, pairs in below.items():
        pairs.sort(key=lambda pair: _aim(drawing, pair, ends[pair][1], 0))
        tops |= _ports(drawing.nodes[node], pairs, is_bottom=True)
    for node, pairs in above.items():
        pairs.sort(key=lambda pair: _aim(drawing, pair, ends[pair][0], -1))
        bottoms |= _ports(drawing.nodes[node], pairs, is_bottom=False)
    return {
        pair: [tops[pair], *drawing.ways.get(pair, ()), bottoms[pair]] for pair in ends
    }


def _aim(drawing: Drawing, pair: Pair, far: str, nearest: int) -> float:
    """Where a way leads from its end, first of all: arrows stand in that order."""
    lanes = drawing.ways.get(pair)
    if lanes:
        return lanes[nearest].x
    box = drawing.nodes[far]
    return box.corner.x + box.size.width / 2


def _ports(box: Box, pairs: Sequence[Pair], *, is_bottom: bool) -> dict[Pair, Point]:
    """Where arrows touch a node: spread along its lower or upper side."""
    (x, y), (width, height) = box
    step = width * PORTS / len(pairs)
    first = x + width / 2 - step * (len(pairs) - 1) / 2
    level = y + height if is_bottom else y
    return {pair: Point(first + n * step, level) for n, pair in enumerate(pairs)}


def _loop(box: Box) -> list[Point]:
    """Out of a node's right side and back into it."""
    (x, y), (width, height) = box
    right, out = x + width, x + width + GAP * 0.7
    top, bottom = y + height * 0.25, y + height * 0.75
    return [
        Point(right, bottom),
        Point(out, bottom),
        Point(out, top),
        Point(right, top),
    ]


def _line(edge: SketchEdge, points: Sequence[Point], *, is_back: bool) -> str:
    names = ["sk-edge"]
    names += ["sk-edge-back"] if is_back else []
    names += ["sk-edge-quiet"] if edge.is_quiet else []
    names += ["sk-edge-join"] if edge.is_join else []
    before, end = points[-2], points[-1]
    if edge.source == edge.target:
        path = "M" + "L".join(f"{p.x:.1f} {p.y:.1f}" for p in points)
        head = f"M{end.x:.1f} {end.y:.1f}l{HEAD:g}-4v8z"
    else:
        path = _curve(points)
        way = 1 if end.y > before.y else -1
        head = f"M{end.x:.1f} {end.y:.1f}l-4 {-HEAD * way:g}h8z"
    return (
        f'<g class="{" ".join(names)}"><path class="sk-line" d="{path}"/>'
        f'<path class="sk-head" d="{head}"/></g>'
    )


def _curve(points: Sequence[Point]) -> str:
    """Upright at both ends of each piece, straight within a lane."""
    path = f"M{points[0].x:.1f} {points[0].y:.1f}"
    for one, other in pairwise(points):
        if one.x == other.x:
            path += f"V{other.y:.1f}"
        else:
            half = (one.y + other.y) / 2
            path += (
                f"C{one.x:.1f} {half:.1f} {other.x:.1f} {half:.1f}"
                f" {other.x:.1f} {other.y:.1f}"
            )
    return path


def _label(text: str, way: Sequence[Point], *, at_end: bool) -> str:
    one, other = (way[-1], way[-2]) if at_end else (way[0], way[1])
    return _text_at(text, Point((one.x + other.x) / 2, (one.y + other.y) / 2 + 3))


def _text_at(text: str, point: Point) -> str:
    return (
        f'<text class="sk-route" x="{point.x:.1f}" y="{point.y:.1f}"'
        f' text-anchor="middle">{escape(cut(text, LONGEST_LABEL))}</text>'
    )
