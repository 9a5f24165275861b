"""Large graphs in few boxes: nodes that stand alike are drawn as one.

A thousand nodes can be drawn, but not read. Two stand alike when they are in the same
box and row, have the same state, and lead to and from such as stand alike themselves.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from stateknot.kernel.vocabulary import END, START
from stateknot.pictures.layers import find_back_edges, longest_ways
from stateknot.pictures.sketch import Sketch, merge_arrows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stateknot.pictures.sketch import SketchNode

MOST_DRAWN = 60
"""Nodes up to which each is drawn by itself, and the most that stand for others."""
_ROUNDS = 8
_SHORTEST_PREFIX = 2

Classes = dict[str, int]


def merge_alike(sketch: Sketch, most: int = MOST_DRAWN) -> Sketch:
    """The sketch, with nodes that stand alike as one where it has more than `most`.

    How alike nodes must be follows from how many can be drawn: the finest division of
    at most `most` classes is taken, and the coarsest where none has so few.
    """
    if len(sketch.nodes) <= most:
        return sketch
    classes = _divide(sketch, most)
    members: dict[int, list[SketchNode]] = {}
    for node in sketch.nodes.values():
        members.setdefault(classes[node.id], []).append(node)
    drawn = {number: _merged(nodes) for number, nodes in members.items()}
    arrows = (
        replace(
            edge,
            source=drawn[classes[edge.source]].id,
            target=drawn[classes[edge.target]].id,
        )
        for edge in sketch.edges
    )
    nodes = {node.id: node for node in drawn.values()}
    return replace(sketch, nodes=nodes, edges=merge_arrows(arrows, nodes))


def _divide(sketch: Sketch, most: int) -> Classes:
    """The class of each node: by place and state, then finer by its neighbours."""
    before, behind = _neighbours(sketch)
    rows = _rows(sketch)
    classes = _numbered(
        {
            node.id: (node.id in (START, END) and node.id, node.group, node.state, row)
            for node, row in zip(sketch.nodes.values(), rows, strict=True)
        }
    )
    for _ in range(_ROUNDS):
        finer = _numbered(
            {
                id: (
                    own,
                    frozenset(classes[n] for n in before.get(id, ())),
                    frozenset(classes[n] for n in behind.get(id, ())),
                )
                for id, own in classes.items()
            }
        )
        count = len(set(finer.values()))
        if count > most or count == len(set(classes.values())):
            break
        classes = finer
    return classes


def _rows(sketch: Sketch) -> list[int]:
    nodes = list(sketch.nodes)
    pairs = [(e.source, e.target) for e in sketch.edges if e.source != e.target]
    back = find_back_edges(nodes, pairs)
    ways = longest_ways(nodes, [pair for pair in pairs if pair not in back])
    return [ways[node] for node in nodes]


def _neighbours(
    sketch: Sketch,
) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    before: dict[str, list[str]] = {}
    behind: dict[str, list[str]] = {}
    for edge in sketch.edges:
        before.setdefault(edge.target, []).append(edge.source)
        behind.setdefault(edge.source, []).append(edge.target)
    return before, behind


def _numbered(keys: Mapping[str, Any]) -> Classes:
    """Classes by equal keys, numbered in the order in which they come up."""
    numbers: dict[Any, int] = {}
    return {id: numbers.setdefault(key, len(numbers)) for id, key in keys.items()}


def _merged(nodes: Sequence[SketchNode]) -> SketchNode:
    """The node that stands for `nodes`: the first, with a label that counts them."""
    first = nodes[0]
    if len(nodes) == 1:
        return first
    prefix = _shared_start([node.label for node in nodes])
    label = f"{prefix}… ({len(nodes)})"
    if len(prefix) < _SHORTEST_PREFIX:
        label = f"{first.label} + {len(nodes) - 1}"
    return replace(
        first,
        label=label,
        note=_shared(node.note for node in nodes),
        is_graph=all(node.is_graph for node in nodes),
    )


def _shared_start(labels: Sequence[str]) -> str:
    """What all begin with: the first and the last in order differ the soonest."""
    pairs = zip(min(labels), max(labels), strict=False)
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _shared(notes: Iterable[str]) -> str:
    found = set(notes)
    return found.pop() if len(found) == 1 else ""
