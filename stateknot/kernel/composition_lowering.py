"""Rewrite successor sets so that call-sites and ports vanish.

Works on calls that were checked, in call-site order. Its cost is linear in what it
gives, and it stops when that is more than a definition may hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stateknot.errors import GraphError
from stateknot.kernel.composition_identity import (
    NodeSource,
    claim_identity,
    composed_node_id,
    composed_route_id,
    scope_preimage,
)
from stateknot.kernel.composition_template import OWNER
from stateknot.kernel.definition_parts import GraphNode, GraphRoute
from stateknot.kernel.limits import MAXIMUM_DEFINITION_BYTES, MAXIMUM_NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stateknot.kernel.composition_template import GraphSubgraphCall
    from stateknot.kernel.definition import GraphDefinition

    Expand = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """One iteration of one call: generated ids by template node, and its entry."""

    ids: Mapping[str, str]
    entry: tuple[str, ...]


class Lowering:
    """One expansion of `calls` in `parent`; `sources` fills as nodes are made."""

    def __init__(
        self, parent: GraphDefinition, calls: Sequence[GraphSubgraphCall]
    ) -> None:
        self.sources: dict[str, NodeSource] = {}
        self._parent = parent
        self._calls = calls
        self._bytes_left = MAXIMUM_DEFINITION_BYTES
        self._reference = parent.reference()
        taken = {node.node_id for node in parent.nodes}
        self._scopes = {call.call_site: self._claim(call, taken) for call in calls}

    def _claim(self, call: GraphSubgraphCall, taken: set[str]) -> list[_Scope]:
        template, ports = call.template.definition, frozenset(call.template.ports)
        reference = template.reference()
        scopes = []
        for iteration in range(call.maximum_iterations):
            preimage = scope_preimage(self._reference, reference, call, iteration)
            ids = {
                node.node_id: composed_node_id(preimage, ordinal)
                for ordinal, node in enumerate(template.nodes)
                if node.node_id not in ports
            }
            for generated in ids.values():
                claim_identity(taken, generated)
            entry = tuple(ids[node_id] for node_id in template.entry_nodes)
            scopes.append(_Scope(ids=ids, entry=entry))
        return scopes

    def entry_nodes(self) -> tuple[str, ...]:
        return self._rewrite(self._parent.entry_nodes, self._expand_parent)

    def nodes(self) -> list[GraphNode]:
        """The ordinary nodes of the parent, then those of every iteration."""
        ordinary = [
            self._rebuilt(node, node.node_id, self._expand_parent, {})
            for node in self._parent.nodes
            if node.node_id not in self._scopes
        ]
        for call in self._calls:
            ordinary.extend(self._generated(call))
        return ordinary

    def _generated(self, call: GraphSubgraphCall) -> Iterator[GraphNode]:
        template = call.template.definition
        reference = template.reference()
        returns = self._returns(call)
        scopes = self._scopes[call.call_site]
        for iteration, scope in enumerate(scopes):
            exits = dict(returns)
            if call.repeat_port is not None and iteration + 1 < len(scopes):
                exits[call.repeat_port] = scopes[iteration + 1].entry
            leads = {node_id: (one,) for node_id, one in scope.ids.items()} | exits
            for node in template.nodes:
                if node.node_id not in scope.ids:
                    continue
                generated = scope.ids[node.node_id]
                routes = {
                    route.route_id: composed_route_id(generated, route.route_id)
                    for route in node.routes
                }
                self.sources[generated] = NodeSource(
                    graph=reference,
                    node_id=node.node_id,
                    call_site=call.call_site,
                    iteration=iteration,
                    routes=routes,
                )
                yield self._rebuilt(node, generated, leads.__getitem__, routes)

    def _returns(self, call: GraphSubgraphCall) -> dict[str, tuple[str, ...]]:
        """Where each port leads when it leaves the call."""
        site = self._parent.node(call.call_site)
        successors = {route.route_id: route.successors for route in site.routes}
        return {
            port: _unite(successors[call.route_of(port)], self._expand_parent)
            for port in call.template.ports
        }

    def _expand_parent(self, target: str) -> tuple[str, ...]:
        scopes = self._scopes.get(target)
        return scopes[0].entry if scopes else (target,)

    def _rebuilt(
        self, node: GraphNode, node_id: str, expand: Expand, routes: Mapping[str, str]
    ) -> GraphNode:
        """The node under `node_id` with its sets rewritten; their kinds stay."""

        def rewrite(ids: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if ids is None else self._rewrite(ids, expand)

        return GraphNode(
            node_id,
            continue_to=rewrite(node.continue_to),
            routes=[
                GraphRoute(
                    routes.get(route.route_id, route.route_id),
                    self._rewrite(route.successors, expand),
                )
                for route in node.routes
            ],
            wait_to=rewrite(node.wait_to),
            terminal=node.terminal,
            extended=node.extended,
        )

    def _rewrite(self, ids: Iterable[str], expand: Expand) -> tuple[str, ...]:
        united = _unite(ids, expand)
        # Each id costs its letters, two quotes and a comma in the definition.
        self._bytes_left -= sum(map(len, united)) + 3 * len(united)
        if self._bytes_left < 0:
            raise GraphError(
                "the composed definition would have more than "
                f"{MAXIMUM_DEFINITION_BYTES} canonical bytes; lower a bound",
                kind="DefinitionTooLarge",
                owner="GraphCompile",
            )
        return united


def _unite(ids: Iterable[str], expand: Expand) -> tuple[str, ...]:
    """Expand each id and put the results together, in id order."""
    united: set[str] = set()
    for target in ids:
        united.update(expand(target))
        if len(united) > MAXIMUM_NODES:
            raise GraphError(
                f"a successor set expands to more than {MAXIMUM_NODES} nodes",
                kind="ExpansionTooLarge",
                owner=OWNER,
            )
    return tuple(sorted(united))
