"""One view of a graph, whether it was compiled or is still being built.

Read `build.py` next for what is exported from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.kernel.topology import check_draft
from stateknot.kernel.vocabulary import START

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stateknot.kernel.blueprint import Blueprint, NodeSpec, Relief
    from stateknot.kernel.topology import Draft

Targets = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """What bounds a graph's runs."""

    recursion_limit: int
    is_parallel: bool
    max_concurrency: int | None
    node_timeout_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """A node that stands for so many iterations of `body`; `repeat` is its port that
    means "once more", empty where that is not known or the call is no loop."""

    site: str
    body: str
    iterations: int
    repeat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphShape:
    """Nodes and how they follow each other; maps are by source, joins by target.

    `errors` say why it does not compile.
    """

    graph_id: str
    name: str
    nodes: Sequence[NodeSpec]
    entry: Targets
    edges: Mapping[str, Targets]
    routes: Mapping[str, Mapping[str, Targets]]
    routers: Mapping[str, str]
    waiting: Mapping[str, Targets]
    wait_to: Mapping[str, Targets]
    reliefs: Sequence[Relief]
    policy: GraphPolicy
    errors: Sequence[str] = field(default_factory=tuple)
    calls: Sequence[CallShape] = ()


def shape_of(blueprint: Blueprint) -> GraphShape:
    """The shape of a compiled graph."""
    choosing = {*blueprint.routers, *blueprint.choices}
    return GraphShape(
        graph_id=blueprint.graph_id,
        name=blueprint.name,
        nodes=list(blueprint.nodes.values()),
        entry=blueprint.entry,
        edges=blueprint.edges,
        routes={node: blueprint.routes_of(node) for node in choosing},
        routers={node: router.name for node, router in blueprint.routers.items()},
        waiting=blueprint.waiting,
        wait_to=blueprint.wait_to,
        reliefs=blueprint.reliefs,
        policy=GraphPolicy(
            recursion_limit=blueprint.recursion_limit,
            is_parallel=blueprint.is_parallel,
            max_concurrency=blueprint.max_concurrency,
            node_timeout_seconds=blueprint.node_timeout_seconds,
        ),
    )


def shape_of_draft(
    draft: Draft, *, graph_id: str, name: str, policy: GraphPolicy
) -> GraphShape:
    """The shape of a graph that is being built, with what is wrong with it."""
    edges = _grouped(draft.edges)
    routes = {
        source: {label: (target,) for label, target in labels.items()}
        for source, _, labels in draft.routers
    }
    routes |= {
        call.call_site: {port: (node,) for port, node in call.returns.items()}
        for call in draft.calls
    }
    joins = [(target, source) for group, target in draft.waiting for source in group]
    return GraphShape(
        graph_id=graph_id,
        name=name,
        nodes=draft.nodes,
        entry=edges.pop(START, ()),
        edges=edges,
        routes=routes,
        routers={s: getattr(r, "__name__", "router") for s, r, _ in draft.routers},
        waiting=_grouped(joins),
        wait_to={spec.id: spec.wait_to for spec in draft.nodes if spec.wait_to},
        reliefs=draft.reliefs,
        policy=policy,
        calls=[
            CallShape(
                site=call.call_site,
                body=getattr(call.body, "graph_id", ""),
                iterations=call.maximum_iterations or 1,
                repeat=call.repeat or "",
            )
            for call in draft.calls
        ],
        errors=sorted({issue.message for issue in check_draft(draft)}),
    )


def _grouped(pairs: Sequence[tuple[str, str]]) -> dict[str, Targets]:
    """The second of each pair by the first, in canonical order."""
    found: dict[str, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return {key: tuple(sorted(values)) for key, values in found.items()}
