"""Which row a node stands in: the longest way to it, loops taken out.

Every step is linear in nodes and arrows. Read `places.py` next for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Pair = tuple[str, str]
WIDEST = 10
"""Nodes of one row; a wider one is broken, so that a fan-out of a thousand is a block
that can be scrolled and not a line that cannot."""


def find_back_edges(nodes: Iterable[str], edges: Sequence[Pair]) -> set[Pair]:
    """The arrows that close a loop, seen from the first node on; none to itself."""
    leads = _grouped(edges)
    back: set[Pair] = set()
    state: dict[str, bool] = {}  # True while a node is on the way that is walked
    for root in nodes:
        if root in state:
            continue
        state[root] = True
        stack = [(root, iter(leads.get(root, ())))]
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in state:
                    state[target] = True
                    stack.append((target, iter(leads.get(target, ()))))
                    break
                if state[target]:
                    back.add((node, target))
            else:
                state[node] = False
                stack.pop()
    return back


def assign_layers(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """Rows from 0 by the longest way; `edges` have no loop.

    Wide rows are broken, see WIDEST.
    """
    return _broken(nodes, longest_ways(nodes, edges))


def longest_ways(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """The arrows of the longest way to each node; `edges` have no loop."""
    leads = _grouped(edges)
    missing = dict.fromkeys(nodes, 0)
    for _, target in edges:
        missing[target] += 1
    layers = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not missing[node]]
    for node in ready:  # grows while it is walked
        for target in leads.get(node, ()):
            layers[target] = max(layers[target], layers[node] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layers


def _broken(nodes: Sequence[str], layers: Mapping[str, int]) -> dict[str, int]:
    rows: dict[int, list[str]] = {}
    for node in nodes:
        rows.setdefault(layers[node], []).append(node)
    broken: dict[str, int] = {}
    row = 0
    for layer in sorted(rows):
        members = rows[layer]
        for start in range(0, len(members), WIDEST):
            broken |= dict.fromkeys(members[start : start + WIDEST], row)
            row += 1
    return broken


def _grouped(edges: Iterable[Pair]) -> dict[str, list[str]]:
    leads: dict[str, list[str]] = {}
    for source, target in edges:
        if source != target:
            leads.setdefault(source, []).append(target)
    return leads
