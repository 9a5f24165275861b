"""From a graph's shape to its exported form, with what may be wrong with it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from stateknot.kernel.exports.topology import (
    Topology,
    TopologyCall,
    TopologyJoin,
    TopologyNode,
    TopologyRelief,
    TopologyRoutes,
    Validation,
)
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.blueprint import NodeSpec
    from stateknot.kernel.exports.shape import GraphPolicy, GraphShape

SUBGRAPH_KINDS = frozenset({"subgraph", "subagent", "call"})
"""Kinds of nodes that stand for a graph of their own."""
MARKERS = ("interrupt", "deferred")
"""Metadata keys that an author sets to mark what a node does."""


def build_topology(shape: GraphShape) -> Topology:
    """Export `shape`, everything sorted."""
    nodes = sorted(shape.nodes, key=lambda spec: spec.id)
    routings = routings_of(shape)
    return Topology(
        graph_id=shape.graph_id,
        name=shape.name,
        entry=tuple(sorted(shape.entry)),
        finish=_finish(shape, routings),
        nodes=tuple(_node(spec, routings[spec.id]) for spec in nodes),
        edges=_pairs((s, t) for s, targets in shape.edges.items() for t in targets),
        conditional_edges=tuple(
            TopologyRoutes(
                source=source,
                router=shape.routers.get(source, ""),
                routes=dict(sorted(shape.routes[source].items())),
            )
            for source in sorted(shape.routes)
        ),
        waiting_edges=tuple(
            TopologyJoin(target=target, sources=tuple(sorted(sources)))
            for target, sources in sorted(shape.waiting.items())
        ),
        wait_edges=_pairs((s, t) for s, to in shape.wait_to.items() for t in to),
        reliefs=tuple(
            TopologyRelief(source=r.source, relief=r.relief, barrier=r.barrier)
            for r in sorted(shape.reliefs, key=lambda r: (r.barrier, r.source))
        ),
        calls=tuple(
            TopologyCall(
                site=call.site,
                body=call.body,
                maximum_iterations=call.iterations,
                repeat=call.repeat,
            )
            for call in sorted(shape.calls, key=lambda call: call.site)
        ),
        policy=_graph_policy(shape.policy),
        validation=Validation(
            errors=tuple(shape.errors), warnings=tuple(_warnings(shape))
        ),
    )


def _pairs(edges: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((s, t) for s, t in edges if t != END))


def _node(spec: NodeSpec, routing: str) -> TopologyNode:
    kind = kind_of(spec)
    marks = [mark for mark in MARKERS if spec.metadata.get(mark)]
    if kind in SUBGRAPH_KINDS:
        marks.append("subgraph")
    others = {k: v for k, v in spec.metadata.items() if k not in MARKERS}
    return TopologyNode(
        id=spec.id,
        kind=kind,
        routing=routing,
        markers=tuple(marks),
        goto=tuple(sorted(spec.destinations)),
        metadata=to_jsonable_python(others, fallback=repr),
        policy=_node_policy(spec),
        source=_source(spec),
    )


def _source(spec: NodeSpec) -> dict[str, Any]:
    if spec.source is None:
        return {}
    names = ("call_site", "node_id", "iteration")
    return {name: getattr(spec.source, name) for name in names}


def kind_of(spec: NodeSpec) -> str:
    """The kind its author gave, else that of what stands behind it."""
    if spec.kind != "node":
        return spec.kind
    kind = getattr(spec.handler, "kind", None)
    return kind if isinstance(kind, str) else spec.kind


def routings_of(shape: GraphShape) -> dict[str, str]:
    """How each node leads on; a node that only joins wait for is `waiting`."""
    awaited = {source for sources in shape.waiting.values() for source in sources}
    awaited |= set(shape.wait_to)
    return {spec.id: _routing(spec, shape, awaited) for spec in shape.nodes}


def _routing(spec: NodeSpec, shape: GraphShape, awaited: set[str]) -> str:
    """The first that holds."""
    edges = shape.edges.get(spec.id, ())
    if spec.is_command or spec.destinations:
        return "command"
    if spec.id in shape.routes:
        return "conditional"
    if END in edges:
        return "terminal"
    if edges:
        return "static"
    return "waiting" if spec.id in awaited else "terminal"


def _finish(shape: GraphShape, routings: dict[str, str]) -> tuple[str, ...]:
    """The nodes at which a branch may end."""
    ends = {
        source
        for source, routes in shape.routes.items()
        if any(END in targets for targets in routes.values())
    }
    ends |= {node for node, routing in routings.items() if routing == "terminal"}
    ends |= {s.id for s in shape.nodes if END in s.destinations}
    ends |= {node for node, targets in shape.wait_to.items() if END in targets}
    return tuple(sorted(ends))


def _graph_policy(policy: GraphPolicy) -> dict[str, Any]:
    given = {
        "recursion_limit": policy.recursion_limit,
        "parallel": policy.is_parallel,
        "max_concurrency": policy.max_concurrency,
        "node_timeout_ms": _milliseconds(policy.node_timeout_seconds),
    }
    return {key: value for key, value in given.items() if value is not None}


def _node_policy(spec: NodeSpec) -> dict[str, Any]:
    """What bounds a node's attempts, and of a child whether it remembers.

    `once` says how a node is kept from running twice.
    """
    retry, handler = spec.retry, spec.handler
    kinds = {"transactional": spec.transactional, "at_most_once": spec.at_most_once}
    given = {
        "once": next((name for name, is_one in kinds.items() if is_one), None),
        "timeout_ms": _milliseconds(spec.timeout_seconds),
        "max_attempts": retry.max_attempts if retry else None,
        "graph": getattr(getattr(handler, "graph", None), "graph_id", None),
        "memory": getattr(handler, "memory", None),
    }
    return {k: v for k, v in given.items() if isinstance(v, (int, str))}


def _milliseconds(duration: float | timedelta | None) -> int | None:
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    return round(duration * 1000)


def _warnings(shape: GraphShape) -> list[str]:
    reached, found = set(shape.entry), list(shape.entry)
    leads = _leads(shape)
    while found:
        for target in leads.get(found.pop(), ()):
            if target not in reached:
                reached.add(target)
                found.append(target)
    unreached = sorted({spec.id for spec in shape.nodes} - reached)
    return [f"node {node!r} cannot be reached from START" for node in unreached]


def _leads(shape: GraphShape) -> dict[str, set[str]]:
    """Every way on that is declared: edges, routes, joins, gotos, waits."""
    leads = {source: set(targets) for source, targets in shape.edges.items()}
    for source, routes in shape.routes.items():
        leads.setdefault(source, set()).update(t for to in routes.values() for t in to)
    for target, sources in shape.waiting.items():
        for source in sources:
            leads.setdefault(source, set()).add(target)
    for spec in shape.nodes:
        leads.setdefault(spec.id, set()).update(spec.destinations)
    for source, targets in shape.wait_to.items():
        leads.setdefault(source, set()).update(targets)
    return leads
