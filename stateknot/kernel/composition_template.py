"""What may be called as a subgraph, and the call: checked before any lowering.

A template is a compiled graph without cycles whose pure terminal nodes are its return
ports: symbolic places that never run, where the caller's routes take over. This module
knows nothing of the graph that calls; read `composition.py` next.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.identifiers import check_node_id, check_route_id
from stateknot.kernel.limits import MAXIMUM_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.definition_parts import GraphNode

OWNER: Final = "GraphComposition"


@dataclass(frozen=True, slots=True, init=False)
class SharedStateSubgraph:
    """A template: `definition` as compiled, `ports` its return ports in id order.

    Raises GraphError MixedReturnPort, MissingReturnPorts, EntryIsReturnPort,
    TemplateStepLimit, CyclicTemplate, or ExtensionsUnsupported for a graph that needs
    more than the closed vocabulary.
    """

    definition: GraphDefinition
    ports: tuple[str, ...]

    def __init__(self, definition: GraphDefinition) -> None:
        found = IssueCollector()
        ports = _collect_ports(found, definition.nodes)
        if definition.extensions.to_dict():
            text = "a template may not have waiting edges, commands or routes to END"
            found.add(OWNER, "ExtensionsUnsupported", text)
        if not ports:
            text = "the template has no return port; add a node that is only terminal"
            found.add(OWNER, "MissingReturnPorts", text)
        for port in ports:
            if port in definition.entry_nodes:
                text = f"return port {shown(port)} is an entry node; enter elsewhere"
                found.add(OWNER, "EntryIsReturnPort", text)
        _check_depth(found, definition, frozenset(ports))
        found.raise_any()
        object.__setattr__(self, "definition", definition)
        object.__setattr__(self, "ports", ports)

    @property
    def executable_count(self) -> int:
        """Nodes that one iteration adds: all but the ports."""
        return len(self.definition.nodes) - len(self.ports)


def _collect_ports(
    found: IssueCollector, nodes: Iterable[GraphNode]
) -> tuple[str, ...]:
    ports = []
    for node in nodes:
        if node.terminal and node.successor_sets:
            text = f"node {shown(node.node_id)} is terminal and leads on; make it two"
            found.add(OWNER, "MixedReturnPort", text)
        elif node.terminal:
            ports.append(node.node_id)
    return tuple(ports)


def _check_depth(
    found: IssueCollector, definition: GraphDefinition, ports: frozenset[str]
) -> None:
    """Walk in topological order: no cycle, no path longer than the step ceiling.

    Waits count as edges. A graph with both faults names the length first.
    """
    onward = {
        node.node_id: tuple(chain.from_iterable(node.successor_sets))
        for node in definition.nodes
    }
    awaited = Counter(chain.from_iterable(onward.values()))
    queue = deque(node_id for node_id in onward if not awaited[node_id])
    depths = dict.fromkeys(onward, 1)
    visited: list[str] = []
    while queue:
        node_id = queue.popleft()
        visited.append(node_id)
        for target in onward[node_id]:
            depths[target] = max(depths[target], depths[node_id] + 1)
            awaited[target] -= 1
            if not awaited[target]:
                queue.append(target)
    longest = max((depths[one] for one in visited if one not in ports), default=0)
    ceiling = definition.limits.maximum_supersteps
    if longest > ceiling:
        text = f"a path of {longest} nodes exceeds the template's {ceiling} supersteps"
        found.add(OWNER, "TemplateStepLimit", text)
    if len(visited) < len(onward):
        caught = shown(min(onward.keys() - set(visited)))
        text = f"the template has a cycle at or before {caught}; use a bounded loop"
        found.add(OWNER, "CyclicTemplate", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSubgraphCall:
    """One call of a template at `call_site`, a node of the calling graph.

    Made by `once` or `bounded_loop`. `return_routes` maps each port to a route of the
    call-site; empty, each port takes the route of its own name.
    """

    call_site: str
    template: SharedStateSubgraph
    maximum_iterations: int = 1
    repeat_port: str | None = None
    return_routes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        found = IssueCollector()
        found.extend(check_node_id(self.call_site))
        found.raise_any()

    @classmethod
    def once(cls, call_site: str, template: SharedStateSubgraph) -> GraphSubgraphCall:
        """Call the template one time."""
        return cls(call_site=call_site, template=template)

    @classmethod
    def bounded_loop(
        cls,
        call_site: str,
        template: SharedStateSubgraph,
        repeat_port: str,
        maximum_iterations: int,
    ) -> GraphSubgraphCall:
        """Call the template again from `repeat_port`, 1 to 1,024 times in all.

        The last iteration's repeat port takes its own route, which is where the author
        handles exhaustion.

        Raises GraphError InvalidIterationLimit or UnknownRepeatPort.
        """
        found = IssueCollector()
        if not 1 <= maximum_iterations <= MAXIMUM_ITERATIONS:
            found.add(
                OWNER,
                "InvalidIterationLimit",
                f"maximum_iterations is {maximum_iterations}; use 1 to "
                f"{MAXIMUM_ITERATIONS}",
            )
        if repeat_port not in template.ports:
            found.add(
                OWNER,
                "UnknownRepeatPort",
                f"{shown(repeat_port)} is no return port of the template; it has "
                f"{', '.join(template.ports)}",
            )
        found.raise_any()
        return cls(
            call_site=call_site,
            template=template,
            maximum_iterations=maximum_iterations,
            repeat_port=repeat_port,
        )

    def with_return_routes(
        self, return_routes: Mapping[str, str] | Iterable[tuple[str, str]]
    ) -> GraphSubgraphCall:
        """Bind every port to a route of the call-site, each to another one.

        Raises GraphError ReturnRoutesMismatch for a binding that is not one to one over
        all ports.
        """
        if isinstance(return_routes, Mapping):
            return_routes = return_routes.items()
        pairs = list(return_routes)
        found = IssueCollector()
        for _, route in pairs:
            found.extend(check_route_id(route))
        ports = [port for port, _ in pairs]
        routes = {route for _, route in pairs}
        if sorted(ports) != list(self.template.ports) or len(routes) != len(pairs):
            found.add(
                OWNER,
                "ReturnRoutesMismatch",
                f"call {shown(self.call_site)} must bind each of the ports "
                f"{', '.join(self.template.ports)} once, to a route of its own; got "
                f"{shown(pairs)}",
            )
        found.raise_any()
        return replace(self, return_routes=dict(sorted(pairs)))

    def route_of(self, port: str) -> str:
        """The route of the call-site that takes over from `port`."""
        return self.return_routes.get(port, port)
