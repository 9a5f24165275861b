"""Graphs with subgraph calls: lowered when they are compiled, run as ordinary nodes.

`compose` turns a builder's blueprint and its calls into the blueprint of the composed
definition. Handlers and routers of generated nodes are those of their template's nodes;
they keep choosing by the template's own labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import ValidationError
from stateknot.kernel.blueprint_definition import define, route_ids
from stateknot.kernel.closed import NodeParts, bind_handlers, close
from stateknot.kernel.composition import (
    GraphComposition,
    GraphSubgraphCall,
    SharedStateSubgraph,
)
from stateknot.kernel.definition import GraphDefinition
from stateknot.kernel.fold import StateFold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.blueprint_definition import Owner
    from stateknot.kernel.topology import CallDraft

    RouteIds = Mapping[str, Mapping[str, str]]


def compose(
    parent: Blueprint, calls: Sequence[CallDraft], owner: Owner
) -> tuple[Blueprint, GraphComposition]:
    """Lower `calls` in `parent`. Raises GraphError for calls that do not fit."""
    bodies = {call.call_site: _blueprint_of(call.body) for call in calls}
    composition = GraphComposition.compile(
        define(parent, owner),
        [_call(call, bodies[call.call_site], owner) for call in calls],
        require_reachable=False,
    )
    authored = {site: (body, _labels(body)) for site, body in bodies.items()}
    here = (parent, route_ids(parent))
    parts = {
        node.node_id: _parts(node.node_id, composition, here, authored)
        for node in composition.graph.nodes
    }
    blueprint = close(
        composition.graph,
        composition.node_sources,
        parts,
        parent.fold,
        name=parent.name,
        is_parallel=parent.is_parallel,
        max_concurrency=parent.max_concurrency,
        node_timeout_seconds=parent.node_timeout_seconds,
        output_model=parent.output_model,
    )
    return blueprint, composition


def _blueprint_of(body: Any) -> Blueprint:
    """The blueprint of a body given as a builder or as a compiled graph."""
    if hasattr(body, "compile"):
        body = body.compile()
    blueprint: Blueprint | None = getattr(body, "blueprint", None)
    if blueprint is None:
        raise ValidationError(
            f"the body of a call is a {type(body).__name__}; give a builder or a graph"
        )
    return blueprint


def _labels(body: Blueprint) -> RouteIds:
    """The route ids of a body by its authors' labels; a composed one knows its own."""
    return body.route_labels or route_ids(body)


def _call(call: CallDraft, body: Blueprint, owner: Owner) -> GraphSubgraphCall:
    template = SharedStateSubgraph(define(body, owner))
    if call.repeat is None or call.maximum_iterations is None:
        return GraphSubgraphCall.once(call.call_site, template)
    return GraphSubgraphCall.bounded_loop(
        call.call_site, template, call.repeat, call.maximum_iterations
    )


def _parts(
    node_id: str,
    composition: GraphComposition,
    parent: tuple[Blueprint, RouteIds],
    bodies: Mapping[str, tuple[Blueprint, RouteIds]],
) -> NodeParts:
    source = composition.node_source(node_id)
    if source is None:
        (blueprint, ids), local = parent, node_id
    else:
        (blueprint, ids), local = bodies[source.call_site], source.node_id
    return NodeParts(
        spec=blueprint.nodes[local],
        router=blueprint.routers.get(local),
        labels=ids.get(local, {}),
    )


def from_definition(
    given: GraphDefinition | GraphComposition,
    *,
    handlers: Mapping[Any, Callable[..., Any]],
    state: type[BaseModel],
    update: type[BaseModel] | None = None,
    reducer: Callable[[Any, Any], Any] | None = None,
    graph_id: str | None = None,
) -> Blueprint:
    """The blueprint of a closed definition or a composition.

    `handlers` are keyed by node id; those of composed nodes by generated id, by the
    pair of call-site and template node, or by the template's node id. Raises GraphError
    for handlers and nodes that do not match.
    """
    if isinstance(given, GraphComposition):
        definition, sources = given.graph, given.node_sources
    else:
        definition, sources = given, {}
    fold = StateFold(state, update_model=update, reducer=reducer)
    parts = bind_handlers(definition, sources, handlers)
    return close(definition, sources, parts, fold, graph_id=graph_id)
