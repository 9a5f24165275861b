"""Lower calls of templates to ordinary nodes and edges, before anything runs.

`GraphComposition.compile` replaces every call-site by the nodes of its iterations. The
result is a plain definition plus a source map; at run time there is no loop counter, no
call stack and no nested driver. The rules of one template or call stand in
`composition_template.py`, the generated names in `composition_identity.py`, the
rewriting in `composition_lowering.py`, read next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from stateknot.kernel.composition_identity import NodeSource
from stateknot.kernel.composition_lowering import Lowering
from stateknot.kernel.composition_template import (
    OWNER,
    GraphSubgraphCall,
    SharedStateSubgraph,
)
from stateknot.kernel.definition import GraphDefinition
from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.limits import MAXIMUM_NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.definition_parts import GraphNode
    from stateknot.kernel.vocabulary import JsonValue

__all__ = [
    "GraphComposition",
    "GraphSubgraphCall",
    "NodeSource",
    "SharedStateSubgraph",
]

_SHARED = (
    "input_schema",
    "state_schema",
    "update_schema",
    "output_schema",
    "reducer",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphComposition:
    """A composed graph: its definition, and where each generated node comes from.

    `node_sources` is in generated-id order; nodes of the calling graph are not in it.
    """

    graph: GraphDefinition
    node_sources: Mapping[str, NodeSource] = field(default_factory=dict, hash=False)

    @classmethod
    def compile(
        cls,
        parent: GraphDefinition,
        calls: Iterable[GraphSubgraphCall],
        *,
        require_reachable: bool = True,
    ) -> GraphComposition:
        """Expand `calls` in `parent`; without any, its bytes and digest stay.

        The order of `calls` never changes a byte, only which of several issues comes
        first. `require_reachable` is that of `GraphDefinition.compile`.

        Raises GraphError of owner GraphComposition for calls that do not fit, before
        anything is expanded, and what compiling the expanded graph raises.
        """
        offered = list(islice(calls, MAXIMUM_NODES + 1))
        _check_calls(parent, offered)
        if not offered:
            return cls(graph=parent)
        in_order = sorted(offered, key=lambda call: call.call_site)
        lowering = Lowering(parent, in_order)
        graph = GraphDefinition.compile(
            identity=parent.identity,
            **{name: getattr(parent, name) for name in _SHARED},
            entry_nodes=lowering.entry_nodes(),
            nodes=lowering.nodes(),
            limits=parent.limits,
            extensions=parent.extensions.to_dict(),
            require_reachable=require_reachable,
        )
        sources = lowering.sources
        in_id_order = {node_id: sources[node_id] for node_id in sorted(sources)}
        return cls(graph=graph, node_sources=in_id_order)

    def node_source(self, node_id: str) -> NodeSource | None:
        """Where a generated node comes from; None for a node of the calling graph."""
        return self.node_sources.get(node_id)

    def source_map(self) -> dict[str, JsonValue]:
        """The stored form of the sources: no part of the digest, kept beside it."""
        return {key: source.to_dict() for key, source in self.node_sources.items()}


def _check_calls(parent: GraphDefinition, calls: list[GraphSubgraphCall]) -> None:
    """Check every call in the order given, and what they expand to, by arithmetic."""
    found = IssueCollector()
    sites = {node.node_id: node for node in parent.nodes}
    seen: set[str] = set()
    count = len(sites)
    for call in calls:
        site = sites.get(call.call_site)
        if call.call_site in seen:
            text = f"{shown(call.call_site)} is called twice; use a node for each"
            found.add(OWNER, "DuplicateCallSite", text)
        elif site is None:
            text = f"call-site {shown(call.call_site)} is no node of the calling graph"
            found.add(OWNER, "UnknownCallSite", text)
        else:
            seen.add(call.call_site)
            _check_call(found, parent, site, call)
            count += call.template.executable_count * call.maximum_iterations - 1
        if count > MAXIMUM_NODES:
            text = f"the calls expand to more than {MAXIMUM_NODES} nodes; lower a bound"
            found.add(OWNER, "ExpansionTooLarge", text)
            break
    _check_extensions(found, parent, seen)
    found.raise_any()


def _check_call(
    found: IssueCollector,
    parent: GraphDefinition,
    site: GraphNode,
    call: GraphSubgraphCall,
) -> None:
    template = call.template.definition
    routes = {route.route_id for route in site.routes}
    bound = {call.route_of(port) for port in call.template.ports}
    has_other = site.terminal or site.continue_to or site.wait_to
    if has_other or routes != bound or len(routes) != len(call.template.ports):
        found.add(
            OWNER,
            "ReturnRoutesMismatch",
            f"call-site {shown(call.call_site)} must have exactly the routes "
            f"{', '.join(sorted(bound))} and no other way out; it has "
            f"{', '.join(sorted(routes)) or 'none'}",
        )
    for name in _SHARED:
        if getattr(parent, name) != getattr(template, name):
            found.add(
                OWNER,
                "SharedStateContractMismatch",
                f"{name} of the template at {shown(call.call_site)} is not that of the "
                "calling graph; both work on one state",
            )
    width = template.limits.maximum_parallelism
    if parent.limits.maximum_parallelism > width:
        found.add(
            OWNER,
            "TemplateParallelismLimit",
            f"the calling graph admits {parent.limits.maximum_parallelism} nodes side "
            f"by side, the template at {shown(call.call_site)} only {width}",
        )


def _check_extensions(
    found: IssueCollector, parent: GraphDefinition, sites: set[str]
) -> None:
    """Refuse extensions that name a call-site: it will be gone."""
    for key, node_id in parent.extensions.named_nodes():
        if node_id in sites:
            text = f"{key} names call-site {shown(node_id)}; put a node between them"
            found.add(OWNER, "ExtensionsUnsupported", text)
