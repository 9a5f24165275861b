"""A compiled graph: its nodes, how they follow each other, and what bounds them.

A `Blueprint` is frozen; `builder.py` makes it after `topology.py` found nothing wrong.
It holds the handlers but calls none of them. Read `routing.py` for how it is followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.kernel.limits import MAXIMUM_PARALLELISM, RECURSION_LIMIT
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from stateknot.kernel.composition_identity import NodeSource
    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.retry import RetryPolicy
    from stateknot.kernel.vocabulary import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """A named place in the graph and the handler behind it.

    `destinations` are declared goto targets; a node with them is command-routing and
    has no edges. `timeout_seconds` bounds each attempt. `on_error(state, ctx, error)`
    may give a result in place of a failure. A `transactional` handler runs inside the
    transaction that stores its result; an `at_most_once` one is never run again by
    itself.
    """

    id: str
    handler: Callable[..., Any]
    is_async: bool = False
    takes_context: bool = True
    retry: RetryPolicy | None = None
    timeout_seconds: float | None = None
    destinations: tuple[str, ...] = ()
    is_command: bool = False
    kind: str = "node"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    on_error: Callable[[Any, Any, Exception], Any] | None = None
    source: NodeSource | None = None
    wait_to: tuple[str, ...] = ()
    transactional: bool = False
    at_most_once: bool = False

    @property
    def runs_once(self) -> bool:
        """Whether a finished result must never be thrown away."""
        return self.transactional or self.at_most_once


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSpec:
    """A function of the folded state that gives a label, and where labels lead."""

    function: Callable[[Any], Any]
    routes: Mapping[str, str]
    name: str = "router"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """When `source` completes without taking `relief`, `relief` counts as arrived at
    `barrier`."""

    source: str
    relief: str
    barrier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A compiled graph. `edges` map a node to its targets in canonical order; `waiting`
    maps a join to the nodes it waits for; `entry` is where START leads.

    `choices` map a node's labels to the sets they lead to, where no router chooses;
    `route_labels` are the ids of the routes behind those of a closed definition.
    `wait_to` says where a node's questions and timers lead. A graph made from a closed
    definition carries it, and where its generated nodes come from.
    """

    graph_id: str
    name: str
    version: str
    fold: StateFold
    nodes: Mapping[str, NodeSpec]
    entry: tuple[str, ...]
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    routers: Mapping[str, RouterSpec] = field(default_factory=dict)
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reliefs: tuple[Relief, ...] = ()
    recursion_limit: int = RECURSION_LIMIT
    maximum_parallelism: int = MAXIMUM_PARALLELISM
    is_parallel: bool = False
    max_concurrency: int | None = None
    node_timeout_seconds: float | None = None
    output_model: type[BaseModel] | None = None
    choices: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    route_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    wait_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    definition: GraphDefinition | None = None
    source_map: Mapping[str, JsonValue] = field(default_factory=dict)

    leads: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Put edges and joins together, so that routing only looks them up."""
        leads: dict[str, set[str]] = {n: set(t) for n, t in self.edges.items()}
        for join, sources in self.waiting.items():
            for source in sources:
                if source not in self.routers and source not in self.choices:
                    leads.setdefault(source, set()).add(join)
        ordered = {node: tuple(sorted(targets)) for node, targets in leads.items()}
        object.__setattr__(self, "leads", ordered)

    def routes_of(self, node_id: str) -> dict[str, tuple[str, ...]]:
        """The labels that a node may choose, and the targets each leads to."""
        if node_id in self.choices:
            return dict(self.choices[node_id])
        router = self.routers.get(node_id)
        routes = router.routes if router else {}
        return {label: (target,) for label, target in routes.items()}

    @property
    def state_model(self) -> type[BaseModel]:
        """The pydantic model of the state."""
        return self.fold.codec.model

    def is_terminal(self, node_id: str) -> bool:
        """Whether a branch may end at the node: it leads nowhere, or to END."""
        if self.definition is not None:
            return self.definition.node(node_id).terminal
        leads = self.leads.get(node_id, ())
        spec = self.nodes[node_id]
        chooses = node_id in self.routers or node_id in self.choices
        has_exit = leads or chooses or spec.destinations or spec.wait_to
        return END in leads or not has_exit
