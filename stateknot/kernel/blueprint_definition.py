"""The canonical definition of a graph that was made with the builder.

`define` maps a blueprint to the closed vocabulary and, for what that lacks, to the
extra keys of `definition_extensions.py`. Its digest names the graph's revision, so
nothing here may depend on a handler's body, an address or an order of insertion.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stateknot.kernel.canonical import canonical_bytes, digest_of
from stateknot.kernel.definition import GraphDefinition
from stateknot.kernel.reducers import function_name
from stateknot.kernel.schema_document import schema_reference
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.vocabulary import JsonValue

_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\Z")
_LONGEST_NAME = 128
_SCHEMA_VERSION: Final = "1.0.0"
"""Of every schema and reducer reference: what a model is stands in its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who a graph's identity belongs to: an https issuer and a subject there."""

    issuer: str = "https://stateknot.local"
    subject: str = "default"

    def to_json(self) -> dict[str, JsonValue]:
        """The form that stands in identities."""
        return {"issuer": self.issuer, "subject": self.subject}


def define(blueprint: Blueprint, owner: Owner) -> GraphDefinition:
    """The definition of `blueprint`.

    Raises GraphError for ids that are not well formed and for reducers without a name.
    """
    if blueprint.definition is not None:
        return blueprint.definition
    fold = blueprint.fold
    update = fold.update_codec.model if fold.update_codec else blueprint.state_model
    routes = route_ids(blueprint)
    state_schema = _schema(owner, blueprint.state_model)
    return GraphDefinition.compile(
        identity={
            "owner": owner.to_json(),
            "capability": {"name": blueprint.graph_id, "version": blueprint.version},
        },
        input_schema=state_schema,
        state_schema=state_schema,
        update_schema=_schema(owner, update),
        output_schema=_schema(owner, blueprint.output_model or blueprint.state_model),
        reducer=_reducer(blueprint, owner, fold),
        entry_nodes=blueprint.entry,
        nodes=[
            _node(blueprint, node_id, routes) for node_id in sorted(blueprint.nodes)
        ],
        limits={
            "maximum_supersteps": str(max(blueprint.recursion_limit, 1)),
            "maximum_parallelism": blueprint.maximum_parallelism,
        },
        extensions=_extensions(blueprint, routes),
        require_reachable=False,
    )


def _schema(owner: Owner, model: type[BaseModel]) -> Any:
    """The reference of a model's schema: of the model, whatever graph uses it, so that
    a graph and its templates agree on their state."""
    return schema_reference(
        model,
        id=f"{owner.issuer}/schemas/{_capability(model.__name__)}",
        version=_SCHEMA_VERSION,
    )


def _reducer(blueprint: Blueprint, owner: Owner, fold: StateFold) -> dict[str, Any]:
    """What folds updates: a named function, or the reducers of the fields."""
    if fold.reducer is not None:
        whole = f"the reducer of graph {blueprint.graph_id!r}"
        qualified = function_name(fold.reducer, whole)
        declared: dict[str, Any] = {"function": qualified}
        name = qualified
    else:
        fields = {name: r.identity for name, r in sorted(fold.reducers.items())}
        model = blueprint.state_model.__name__
        declared, name = {"fields": fields}, f"{model}.fields"
    return {
        "identity": {
            "owner": owner.to_json(),
            "capability": {"name": _capability(name), "version": _SCHEMA_VERSION},
        },
        "definition_digest": digest_of(canonical_bytes(declared)),
    }


def _capability(name: str) -> str:
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    if len(clean) <= _LONGEST_NAME:
        return clean
    return f"{clean[:60]}-{hashlib.sha256(name.encode()).hexdigest()}"


def _node(
    blueprint: Blueprint, node_id: str, routes: dict[str, dict[str, str]]
) -> dict[str, JsonValue]:
    """A node's JSON form, since only the compiler knows the ways out of the extras."""
    edges = [t for t in blueprint.edges.get(node_id, ()) if t != END]
    is_command = blueprint.nodes[node_id].is_command
    node: dict[str, JsonValue] = {
        "node_id": node_id,
        "routes": _node_routes(blueprint, node_id, routes.get(node_id, {})),
        "terminal": bool(blueprint.is_terminal(node_id) and not is_command),
    }
    if edges:
        node["continue_to"] = edges
    if node_id in blueprint.wait_to:
        node["wait_to"] = list(blueprint.wait_to[node_id])
    return node


def _node_routes(
    blueprint: Blueprint, node_id: str, ids: dict[str, str]
) -> list[JsonValue]:
    return [
        {"route_id": ids[label], "successors": list(targets)}
        for label, targets in blueprint.routes_of(node_id).items()
        if targets != (END,)
    ]


def route_ids(blueprint: Blueprint) -> dict[str, dict[str, str]]:
    """By node and label: the label where it is unique and well formed, else with its
    node in front."""
    labels = {node: list(blueprint.routes_of(node)) for node in blueprint.nodes}
    uses = Counter(label for given in labels.values() for label in given)
    return {
        node: {
            label: label
            if uses[label] == 1 and _WELL_FORMED.match(label)
            else _qualified(node, label)
            for label in given
        }
        for node, given in labels.items()
        if given
    }


def _qualified(node: str, label: str) -> str:
    route_id = f"{node}.{label}"
    if _WELL_FORMED.match(route_id):
        return route_id
    return f"{node[:50]}.{hashlib.sha256(label.encode()).hexdigest()}"


def _extensions(
    blueprint: Blueprint, routes: dict[str, dict[str, str]]
) -> dict[str, JsonValue]:
    end_routes = {
        node: [
            given[label]
            for label, targets in blueprint.routes_of(node).items()
            if targets == (END,)
        ]
        for node, given in routes.items()
    }
    return {
        "waiting_edges": {join: list(s) for join, s in blueprint.waiting.items()},
        "barrier_reliefs": [
            {"source": r.source, "relief": r.relief, "barrier": r.barrier}
            for r in blueprint.reliefs
        ],
        "command_nodes": {
            node_id: list(spec.destinations)
            for node_id, spec in blueprint.nodes.items()
            if spec.is_command or spec.destinations
        },
        "end_routes": {node: labels for node, labels in end_routes.items() if labels},
    }
