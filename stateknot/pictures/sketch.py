"""What a picture shows: nodes with their states, arrows, and boxes around nodes.

A definition is read as it is stored, so that a graph is drawn by a process that has no
code for it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stateknot.kernel.vocabulary import END, START

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class NodeState(StrEnum):
    """How far a node is; each has a colour, a shape and a word of its own."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"
    WAITING = "waiting"
    PENDING = "pending"
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchNode:
    """A node. `label` is what is written on it, `group` the box it stands in ("" for
    none), `note` a few words below the label; `is_graph` that a graph runs in it."""

    id: str
    label: str
    group: str = ""
    state: NodeState | None = None
    note: str = ""
    is_graph: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchEdge:
    """An arrow. `is_quiet` marks ways that are taken only on an answer or a command;
    `is_join` that the target waits for all of its sources."""

    source: str
    target: str
    label: str = ""
    is_quiet: bool = False
    is_join: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Nodes by id, and arrows, at most one from a node to another."""

    nodes: Mapping[str, SketchNode]
    edges: tuple[SketchEdge, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)


ENDS = {START: "START", END: "END"}


def sketch_definition(
    definition: Mapping[str, Any], source_map: Mapping[str, Any] | None = None
) -> Sketch:
    """The sketch of a stored definition; nodes have no state yet.

    `source_map` says where composed nodes come from: each iteration of a call becomes a
    box, its nodes get the names that their author gave.
    """
    sources = source_map or {}
    nodes = {START: SketchNode(id=START, label=ENDS[START])}
    groups: dict[str, str] = {}
    for item in definition["nodes"]:
        node_id = item["node_id"]
        nodes[node_id] = _node(node_id, sources.get(node_id), groups)
    nodes[END] = SketchNode(id=END, label=ENDS[END])
    labels = {
        route: label
        for source in sources.values()
        for label, route in source.get("routes", {}).items()
    }
    edges = merge_arrows(_edges(definition, labels), nodes)
    return Sketch(nodes=nodes, edges=edges, groups=groups)


def _node(
    node_id: str, source: Mapping[str, Any] | None, groups: dict[str, str]
) -> SketchNode:
    if source is None:
        return SketchNode(id=node_id, label=node_id)
    iteration = source.get("iteration", 0) + 1
    group = f"{source['call_site']}/{iteration}"
    groups[group] = f"{source['call_site']} {iteration}"
    return SketchNode(id=node_id, label=source.get("node_id", node_id), group=group)


def _edges(
    definition: Mapping[str, Any], labels: Mapping[str, str]
) -> Iterator[SketchEdge]:
    """Every arrow of the definition, several between the same nodes included."""
    for node_id in definition["entry_nodes"]:
        yield SketchEdge(source=START, target=node_id)
    for node in definition["nodes"]:
        yield from _ways_out(node, labels)
    for target, sources in definition.get("waiting_edges", {}).items():
        for source in sources:
            yield SketchEdge(source=source, target=target, is_join=True)
    for source, targets in definition.get("command_nodes", {}).items():
        for target in targets:
            yield SketchEdge(source=source, target=target, is_quiet=True)
    for source, routes in definition.get("end_routes", {}).items():
        for label in routes:
            yield SketchEdge(source=source, target=END, label=labels.get(label, label))


def _ways_out(
    node: Mapping[str, Any], labels: Mapping[str, str]
) -> Iterator[SketchEdge]:
    source = node["node_id"]
    for target in node.get("continue_to") or ():
        yield SketchEdge(source=source, target=target)
    for route in node["routes"]:
        label = labels.get(route["route_id"], route["route_id"])
        for target in route["successors"]:
            yield SketchEdge(source=source, target=target, label=label)
    for target in node.get("wait_to") or ():
        yield SketchEdge(source=source, target=target, is_quiet=True)
    if node["terminal"]:
        yield SketchEdge(source=source, target=END)


def merge_arrows(
    edges: Iterable[SketchEdge], nodes: Mapping[str, SketchNode]
) -> tuple[SketchEdge, ...]:
    """One arrow between two nodes, with every label; unknown ends are left out."""
    found: dict[tuple[str, str], list[SketchEdge]] = {}
    for edge in edges:
        if edge.source in nodes and edge.target in nodes:
            found.setdefault((edge.source, edge.target), []).append(edge)
    return tuple(
        SketchEdge(
            source=source,
            target=target,
            label=", ".join(dict.fromkeys(e.label for e in same if e.label)),
            is_quiet=all(e.is_quiet for e in same),
            is_join=any(e.is_join for e in same),
        )
        for (source, target), same in found.items()
    )
