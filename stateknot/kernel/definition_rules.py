"""The rules that only a whole graph can break, in the order the reference applies them.

Every function adds what it finds to a collector and goes on, so that an author sees all
of it at once; spec/composition.md, section 1.5, fixes which comes first. Costs are
linear in nodes and edges. Read `definition.py` next.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.limits import MAXIMUM_NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stateknot.kernel.definition_extensions import Extensions
    from stateknot.kernel.definition_parts import GraphLimits, GraphNode

    NodeTable = Mapping[str, GraphNode]

OWNER = "GraphCompile"


def collect_nodes(
    found: IssueCollector, nodes: Iterable[GraphNode], extensions: Extensions
) -> dict[str, GraphNode]:
    """Table the nodes by id, in id order, refusing ids and routes used twice.

    Looks at no more than one node over the ceiling, however many are offered.
    """
    table: dict[str, GraphNode] = {}
    routes: dict[str, str] = {}
    for index, node in enumerate(nodes):
        if index >= MAXIMUM_NODES:
            found.add(OWNER, "TooManyNodes", f"more than {MAXIMUM_NODES} nodes")
            break
        for route in node.routes:
            _claim_route(found, routes, route.route_id, node.node_id)
        if node.node_id in table:
            text = f"node {shown(node.node_id)} is defined twice; rename one"
            found.add(OWNER, "DuplicateNode", text)
        else:
            table[node.node_id] = node
    for node_id, route_ids in extensions.end_routes.items():
        for route_id in route_ids:
            _claim_route(found, routes, route_id, node_id)
    if not table:
        found.add(OWNER, "EmptyNodes", "the graph has no nodes; add at least one")
    return {node_id: table[node_id] for node_id in sorted(table)}


def _claim_route(
    found: IssueCollector, routes: dict[str, str], route_id: str, node_id: str
) -> None:
    if route_id in routes:
        found.add(
            OWNER,
            "DuplicateRoute",
            f"route {shown(route_id)} of node {shown(node_id)} is already a route of "
            f"{shown(routes[route_id])}; route ids are unique in the whole graph",
        )
    routes.setdefault(route_id, node_id)


def check_entry(
    found: IssueCollector, entry: tuple[str, ...], table: NodeTable, limits: GraphLimits
) -> None:
    if not entry:
        text = "the graph has no entry nodes; name the nodes that run first"
        found.add(OWNER, "EmptyEntryNodes", text)
    _check_width(found, "the entry set", entry, limits)
    for node_id in entry:
        if table and node_id not in table:
            text = f"entry node {shown(node_id)} does not exist; add it or rename it"
            found.add(OWNER, "MissingEntryNode", text)


def check_successors(
    found: IssueCollector, table: NodeTable, limits: GraphLimits
) -> None:
    for node_id, node in table.items():
        for successors in node.successor_sets:
            _check_width(
                found, f"a successor set of node {shown(node_id)}", successors, limits
            )
            for successor in successors:
                if successor not in table:
                    found.add(
                        OWNER,
                        "MissingSuccessorNode",
                        f"node {shown(node_id)} leads to {shown(successor)}, which "
                        "does not exist; add that node or rename the successor",
                    )


def _check_width(
    found: IssueCollector, what: str, ids: tuple[str, ...], limits: GraphLimits
) -> None:
    if len(ids) > limits.maximum_parallelism:
        found.add(
            OWNER,
            "ParallelismExceeded",
            f"{what} holds {len(ids)} nodes, above maximum_parallelism "
            f"{limits.maximum_parallelism}; raise the limit or narrow the set",
        )


def check_extensions(
    found: IssueCollector, table: NodeTable, extensions: Extensions
) -> None:
    """Refuse extensions of unknown nodes, and nodes whose way out is nowhere."""
    for key, node_id in extensions.named_nodes():
        if node_id not in table:
            text = f"{key} names node {shown(node_id)}, which does not exist"
            found.add(OWNER, "MissingNode", text)
    with_way_out = extensions.nodes_with_way_out()
    for node_id, node in table.items():
        has_own = node.terminal or bool(node.successor_sets)
        if not has_own and node_id not in with_way_out:
            text = f"node {shown(node_id)} has no way out, nor an extension with one"
            found.add("GraphNode", "NoControlOutcome", text)


def check_paths(
    found: IssueCollector,
    entry: tuple[str, ...],
    table: NodeTable,
    extensions: Extensions,
) -> None:
    """Refuse nodes that nothing reaches, and nodes that reach no boundary.

    A boundary is a node with a terminal, a wait or a route to the end; some path to one
    suffices. A missing successor counts as one: it has its own issue.
    """
    onward: dict[str, list[str]] = defaultdict(list)
    backward: dict[str, list[str]] = defaultdict(list)
    for source, target in _edges(table, extensions):
        onward[source].append(target)
        backward[target].append(source)
    reached = _reach(entry, onward)
    missing = [target for target in backward if target not in table]
    bounded = _reach([*_boundaries(table, extensions), *missing], backward)
    for node_id in table:
        if entry and node_id not in reached:
            text = f"node {shown(node_id)} is reached from no entry node; lead to it"
            found.add(OWNER, "UnreachableNode", text)
    for node_id in table:
        if node_id not in bounded:
            text = f"node {shown(node_id)} can never reach a terminal node or a wait"
            found.add(OWNER, "NoBoundaryPath", text)


def _edges(table: NodeTable, extensions: Extensions) -> Iterator[tuple[str, str]]:
    for node_id, node in table.items():
        for successor in chain.from_iterable(node.successor_sets):
            yield node_id, successor
    yield from extensions.edges()


def _boundaries(table: NodeTable, extensions: Extensions) -> Iterator[str]:
    for node_id, node in table.items():
        if node.terminal or node.wait_to is not None:
            yield node_id
    yield from extensions.ends()


def _reach(starts: Iterable[str], edges: Mapping[str, list[str]]) -> set[str]:
    reached = set(starts)
    pending = list(reached)
    while pending:
        for target in edges.get(pending.pop(), ()):
            if target not in reached:
                reached.add(target)
                pending.append(target)
    return reached
