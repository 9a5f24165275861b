"""Running a closed or composed definition: its blueprint, from handlers by node.

`close` pairs every node of a definition with what runs it. Handlers of a composed node
are those of its template's node, and may choose by the template's own labels as well as
by the generated ids. Read `composition.py` for how composed nodes come to be.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import GraphError
from stateknot.kernel.blueprint import Blueprint, NodeSpec, Relief, RouterSpec
from stateknot.kernel.handlers import is_async, takes_context
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stateknot.kernel.composition_identity import NodeSource
    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.definition_extensions import Extensions
    from stateknot.kernel.definition_parts import GraphNode
    from stateknot.kernel.fold import StateFold


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """What runs a node: its spec, and the router that chooses for it, if one does.

    `labels` map the router's labels to the route ids of the node's own definition.
    """

    spec: NodeSpec
    router: RouterSpec | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def parts_of(node_id: str, handler: Callable[..., Any]) -> NodeParts:
    """The parts of a node that is a bare handler."""
    return NodeParts(
        spec=NodeSpec(
            id=node_id,
            handler=handler,
            is_async=is_async(handler),
            takes_context=takes_context(node_id, handler),
        )
    )


def close(
    definition: GraphDefinition,
    sources: Mapping[str, NodeSource],
    parts: Mapping[str, NodeParts],
    fold: StateFold,
    **settings: Any,
) -> Blueprint:
    """The blueprint of `definition`. `parts` hold every node of it by id.

    `settings` are further fields of it; without a `graph_id` it is run under the name
    in the definition's identity.
    """
    nodes, routers, choices, wait_to, edges = {}, {}, {}, {}, {}
    known: dict[str, dict[str, str]] = {}
    extras = definition.extensions
    for node in definition.nodes:
        part, source = parts[node.node_id], sources.get(node.node_id)
        nodes[node.node_id] = _spec(part.spec, node.node_id, source, extras)
        if node.continue_to:
            edges[node.node_id] = node.continue_to
        if node.wait_to:
            wait_to[node.node_id] = node.wait_to
        routes = _routes(node, extras)
        if routes:
            labels = _route_labels(routes, source, part.labels)
            known[node.node_id] = labels
            choices[node.node_id] = {label: routes[labels[label]] for label in labels}
        if part.router is not None:
            routers[node.node_id] = part.router
    identity = definition.identity
    return Blueprint(
        graph_id=settings.pop("graph_id", None) or identity.name,
        name=settings.pop("name", None) or identity.name,
        version=identity.version,
        fold=fold,
        nodes=nodes,
        entry=definition.entry_nodes,
        edges=edges,
        routers=routers,
        choices=choices,
        route_labels=known,
        wait_to=wait_to,
        waiting=extras.waiting_edges,
        reliefs=tuple(Relief(**asdict(one)) for one in extras.barrier_reliefs),
        recursion_limit=definition.limits.maximum_supersteps,
        maximum_parallelism=definition.limits.maximum_parallelism,
        definition=definition,
        source_map={key: source.to_dict() for key, source in sources.items()},
        **settings,
    )


def _spec(
    spec: NodeSpec, node_id: str, source: NodeSource | None, extras: Extensions
) -> NodeSpec:
    own = replace(spec, id=node_id, source=source)
    if node_id not in extras.command_nodes:
        return own
    return replace(own, is_command=True, destinations=extras.command_nodes[node_id])


def _routes(node: GraphNode, extras: Extensions) -> dict[str, tuple[str, ...]]:
    """Where each route of a node leads; those that end the branch included."""
    routes = {route.route_id: route.successors for route in node.routes}
    return routes | dict.fromkeys(extras.end_routes.get(node.node_id, ()), (END,))


def _route_labels(
    routes: Mapping[str, tuple[str, ...]],
    source: NodeSource | None,
    labels: Mapping[str, str],
) -> dict[str, str]:
    """The route of each label: its own id, and what its node's author calls it."""
    known = {route_id: route_id for route_id in routes}
    local = source.routes if source is not None else {}
    for label, generated in local.items():
        known.setdefault(label, generated)
    for label, route_id in labels.items():
        generated = local.get(route_id, route_id)
        if generated in routes:
            known.setdefault(label, generated)
    return known


def bind_handlers(
    definition: GraphDefinition,
    sources: Mapping[str, NodeSource],
    handlers: Mapping[Any, Callable[..., Any]],
) -> dict[str, NodeParts]:
    """The parts of every node, from handlers by node id.

    A composed node's handler is found by its generated id, by the pair of call-site and
    template node, or by the template's node id. Raises GraphError naming every node
    without a handler, and every handler without a node.
    """
    parts, used, missing = {}, set(), []
    for node in definition.nodes:
        keys = _keys(node.node_id, sources.get(node.node_id))
        key = next((key for key in keys if key in handlers), None)
        if key is None:
            missing.append(keys[-1])
            continue
        used.add(key)
        parts[node.node_id] = parts_of(node.node_id, handlers[key])
    unused = [key for key in handlers if key not in used]
    if missing or unused:
        raise GraphError(_mismatch(missing, unused), kind="HandlerMismatch")
    return parts


def _keys(node_id: str, source: NodeSource | None) -> list[Any]:
    if source is None:
        return [node_id]
    return [node_id, (source.call_site, source.node_id), source.node_id]


def _mismatch(missing: Iterable[Any], unused: Iterable[Any]) -> str:
    told = []
    lacking = sorted({str(key) for key in missing})
    if lacking:
        told.append(f"no handler was given for {', '.join(lacking)}")
    if unused:
        names = ", ".join(sorted(map(str, unused)))
        told.append(f"no node of the definition is run by the handlers of {names}")
    return "; ".join(told)
