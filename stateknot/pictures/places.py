"""Where nodes of any size stand, and the way of each arrow between them.

Long arrows hold a place in every row that they pass, so that they go around nodes: the
method of Sugiyama, Tagawa and Toda (1981), with medians for the order in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from stateknot.pictures.layers import assign_layers, find_back_edges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stateknot.pictures.layers import Pair

GAP = 26.0
ROW_GAP = 48.0
LANE = 10.0
SWEEPS = 4
MOST_LANES = 2_000
"""Places that long arrows may hold in all: the cost of a picture stays linear, and what
is beyond goes straight."""


class Size(NamedTuple):
    """Width and height of a node."""

    width: float
    height: float


NOTHING = Size(0.0, 0.0)


class Point(NamedTuple):
    """A place in the picture: right and down from its corner."""

    x: float
    y: float


@dataclass(slots=True)
class Placement:
    """Corners of the nodes, the lanes that each arrow passes from upper to lower end,
    and the size of it all. `back` are the arrows that lead up."""

    corners: dict[str, Point] = field(default_factory=dict)
    lanes: dict[Pair, list[Point]] = field(default_factory=dict)
    back: set[Pair] = field(default_factory=set)
    size: Size = NOTHING


@dataclass(slots=True)
class _Rows:
    """Items by row: nodes, and lanes whose names begin with a NUL. `above` and `below`
    are the neighbours of an item in the rows beside its own."""

    rows: list[list[str]]
    sizes: dict[str, Size]
    above: dict[str, list[str]] = field(default_factory=dict)
    below: dict[str, list[str]] = field(default_factory=dict)
    chains: dict[Pair, list[str]] = field(default_factory=dict)


def place(sizes: Mapping[str, Size], edges: Sequence[Pair]) -> Placement:
    """Place `sizes` (in drawing order, the first on top) along `edges`."""
    edges = [pair for pair in dict.fromkeys(edges) if pair[0] != pair[1]]
    nodes = list(sizes)
    back = find_back_edges(nodes, edges)
    downward = {pair: pair[::-1] if pair in back else pair for pair in edges}
    layers = assign_layers(nodes, list(dict.fromkeys(downward.values())))
    rows = _rows(sizes, layers, downward)
    _order(rows)
    return _placement(rows, _columns(rows), back)


def _rows(
    sizes: Mapping[str, Size], layers: Mapping[str, int], edges: Mapping[Pair, Pair]
) -> _Rows:
    rows = _Rows([[] for _ in range(max(layers.values(), default=-1) + 1)], {**sizes})
    for node, layer in layers.items():
        rows.rows[layer].append(node)
    left = MOST_LANES
    spans = {pair: layers[down[1]] - layers[down[0]] for pair, down in edges.items()}
    for pair in sorted(edges, key=spans.__getitem__):
        upper, lower = edges[pair]
        needed = spans[pair] - 1
        left -= needed
        chain = [f"\0{len(rows.chains)}.{n}" for n in range(needed)] if left > 0 else []
        rows.chains[pair] = chain
        for offset, lane in enumerate(chain, start=layers[upper] + 1):
            rows.rows[offset].append(lane)
            rows.sizes[lane] = Size(LANE, 0)
        links = [upper, *chain, lower]
        for one, other in pairwise(links):
            rows.below.setdefault(one, []).append(other)
            rows.above.setdefault(other, []).append(one)
    return rows


def _order(rows: _Rows) -> None:
    """Sort each row by the medians of its neighbours, down and up in turn."""
    for sweep in range(SWEEPS):
        neighbours = rows.below if sweep % 2 else rows.above
        walk = reversed(rows.rows) if sweep % 2 else iter(rows.rows)
        ranks: dict[str, float] = {}
        for row in walk:
            own = {item: i / max(1, len(row) - 1) for i, item in enumerate(row)}
            keys = {
                item: _median(
                    [ranks[n] for n in neighbours.get(item, ()) if n in ranks]
                )
                for item in row
            }
            row.sort(key=lambda item: _first_known(keys[item], own[item]))
            ranks |= {item: i / max(1, len(row) - 1) for i, item in enumerate(row)}


def _first_known(*keys: float | None) -> float:
    return next((key for key in keys if key is not None), 0.0)


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    values.sort()
    middle = len(values) // 2
    return (values[middle] + values[-middle - 1]) / 2


def _columns(rows: _Rows) -> dict[str, float]:
    """The middle of each item: as near to its neighbours as its row allows."""
    middles: dict[str, float] = {}
    for row in rows.rows:
        _spread(row, rows.sizes, dict.fromkeys(row, 0.0), middles)
    for sweep in range(SWEEPS):
        neighbours = rows.below if sweep % 2 else rows.above
        for row in reversed(rows.rows) if sweep % 2 else rows.rows:
            wanted = {
                item: _first_known(
                    _median([middles[n] for n in neighbours.get(item, ())]),
                    middles[item],
                )
                for item in row
            }
            _spread(row, rows.sizes, wanted, middles)
    return middles


def _spread(
    row: Sequence[str],
    sizes: Mapping[str, Size],
    wanted: Mapping[str, float],
    middles: dict[str, float],
) -> None:
    """Put the items of a row as near to `wanted` as their widths allow, in order.

    Blocks of touching items stand at the mean of what their items want.
    """
    blocks: list[tuple[float, float, list[str]]] = []  # left edge, width, items
    for item in row:
        width = sizes[item].width + GAP
        left, items = wanted[item] - width / 2, [item]
        while blocks and sum(blocks[-1][:2]) > left:
            before, wide, others = blocks.pop()
            count, own = len(others), len(items)
            left = (before * count + (left - wide) * own) / (count + own)
            others.extend(items)
            width, items = wide + width, others
        blocks.append((left, width, items))
    for left, _, items in blocks:
        for item in items:
            width = sizes[item].width + GAP
            middles[item] = left + width / 2
            left += width


def _placement(rows: _Rows, middles: Mapping[str, float], back: set[Pair]) -> Placement:
    shift = -min((m - rows.sizes[i].width / 2 for i, m in middles.items()), default=0.0)
    placement = Placement(back=back)
    lanes: dict[str, list[Point]] = {}
    top = right = 0.0
    for row in rows.rows:
        height = max((rows.sizes[item].height for item in row), default=0.0)
        for item in row:
            size, x = rows.sizes[item], middles[item] + shift
            right = max(right, x + size.width / 2)
            if item.startswith("\0"):
                lanes[item] = [Point(x, top), Point(x, top + height)]
            else:
                corner = Point(x - size.width / 2, top + (height - size.height) / 2)
                placement.corners[item] = corner
        top += height + ROW_GAP
    for pair, chain in rows.chains.items():
        placement.lanes[pair] = [point for lane in chain for point in lanes[lane]]
    placement.size = Size(right, max(0.0, top - ROW_GAP))
    return placement
