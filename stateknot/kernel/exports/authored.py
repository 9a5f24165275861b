"""The shape of a composed graph as its author wrote it: a call is one node again.

Read back from the nodes' sources, so that a definition of the closed form, and one
whose builder is gone, are drawn alike. A call's routes carry the labels of the body's
nodes; its ports left no trace. A call of a call is shown as the outer one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stateknot.kernel.exports.shape import CallShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.blueprint import NodeSpec
    from stateknot.kernel.composition_identity import NodeSource
    from stateknot.kernel.exports.shape import GraphShape, Targets


def collapse(shape: GraphShape) -> GraphShape:
    """`shape` with every call in place of the nodes that it became."""
    sources = {spec.id: spec.source for spec in shape.nodes if spec.source is not None}
    if not sources:
        return shape
    boxes = {node: source.call_site for node, source in sources.items()}
    return replace(
        shape,
        nodes=_nodes(shape.nodes),
        entry=tuple(sorted({boxes.get(node, node) for node in shape.entry})),
        edges=_edges(shape.edges, sources),
        routes=_routes(shape.routes, sources),
        routers={n: name for n, name in shape.routers.items() if n not in sources},
        wait_to=_edges(shape.wait_to, sources),
        calls=_calls(sources),
    )


def _nodes(specs: Iterable[NodeSpec]) -> list[NodeSpec]:
    """The ordinary nodes, and one for each call; it has no handler of its own."""
    found: dict[str, NodeSpec] = {}
    for spec in specs:
        if spec.source is None:
            found[spec.id] = spec
        else:
            site = spec.source.call_site
            found[site] = replace(
                spec,
                id=site,
                kind="call",
                source=None,
                retry=None,
                timeout_seconds=None,
                destinations=(),
                is_command=False,
                metadata={},
                wait_to=(),
            )
    return list(found.values())


def _leaves(
    source: str, targets: Targets, sources: Mapping[str, NodeSource]
) -> list[str]:
    """Where targets lead, seen from outside of the call that `source` is in.

    What stays in an iteration or goes to a later one is the call's own; what goes to an
    earlier one enters the call again.
    """
    at, found = sources.get(source), []
    for target in targets:
        to = sources.get(target)
        if to is None:
            found.append(target)
        elif at is None or at.call_site != to.call_site or at.iteration > to.iteration:
            found.append(to.call_site)
    return found


def _edges(
    edges: Mapping[str, Targets], sources: Mapping[str, NodeSource]
) -> dict[str, Targets]:
    grouped: dict[str, set[str]] = {}
    for node, targets in edges.items():
        box = sources[node].call_site if node in sources else node
        leading = _leaves(node, targets, sources)
        if leading:
            grouped.setdefault(box, set()).update(leading)
    return {node: tuple(sorted(targets)) for node, targets in grouped.items()}


def _routes(
    routes: Mapping[str, Mapping[str, Targets]], sources: Mapping[str, NodeSource]
) -> dict[str, dict[str, Targets]]:
    """By node and label; of a call those labels that lead out of it."""
    found: dict[str, dict[str, set[str]]] = {}
    for node, labels in routes.items():
        source = sources.get(node)
        box = node if source is None else source.call_site
        for label in _authors(labels, source):
            leading = _leaves(node, labels[label], sources)
            if leading:
                found.setdefault(box, {}).setdefault(label, set()).update(leading)
    return {
        node: {label: tuple(sorted(held)) for label, held in labels.items()}
        for node, labels in found.items()
    }


def _authors(labels: Mapping[str, Targets], source: NodeSource | None) -> Iterable[str]:
    """The labels that an author gave; each route has generated ones as well.

    In a call of a call the local label of the outer one is itself generated.
    """
    if source is None:
        return labels
    local = [label for label in labels if label not in source.routes.values()]
    return [label for label in local if label not in source.routes] or local


def _calls(sources: Mapping[str, NodeSource]) -> list[CallShape]:
    bounds: dict[str, tuple[str, int]] = {}
    for source in sources.values():
        _, known = bounds.get(source.call_site, ("", 0))
        body = body_of(source)
        bounds[source.call_site] = (body, max(known, source.iteration + 1))
    return [
        CallShape(site=site, body=body, iterations=iterations)
        for site, (body, iterations) in sorted(bounds.items())
    ]


def body_of(source: NodeSource) -> str:
    """The name of the template that a node comes from."""
    identity = source.graph["identity"]
    return str(identity["capability"]["name"])
