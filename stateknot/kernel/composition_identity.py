"""The names of composed nodes and routes: hashes of where they come from.

A name depends on the calling graph as authored, the template, the call and the
iteration, and on nothing else: the same source gives the same names in every process,
and another bound, binding or template gives others. Source: spec/composition.md, 2.4.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.errors import GraphError
from stateknot.kernel.canonical import canonical_bytes
from stateknot.kernel.composition_template import OWNER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.composition_template import GraphSubgraphCall
    from stateknot.kernel.vocabulary import JsonValue

_SCOPE_DOMAIN = "stateknot.graph-composition.v1"
_ROUTE_DOMAIN = "stateknot.graph-composition.route.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSource:
    """Where a composed node comes from.

    `graph` is the template's reference, `node_id` the node in it, `iteration` counts
    from 0. `routes` maps the template's route ids to the generated ones.
    """

    graph: Mapping[str, JsonValue] = field(hash=False)
    node_id: str
    call_site: str
    iteration: int
    routes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def route_id(self, label: str) -> str | None:
        """The generated id of the template's route `label`, None if it has no such."""
        return self.routes.get(label)

    def to_dict(self) -> dict[str, JsonValue]:
        """The stored form; `routes` is left out when there are none."""
        data: dict[str, JsonValue] = {
            "graph": dict(self.graph),
            "node_id": self.node_id,
            "call_site": self.call_site,
            "iteration": self.iteration,
        }
        return {**data, "routes": dict(self.routes)} if self.routes else data


def scope_preimage(
    parent: JsonValue, template: JsonValue, call: GraphSubgraphCall, iteration: int
) -> bytes:
    """What names one iteration of one call; the first two are graph references."""
    return canonical_bytes(
        {
            "domain": _SCOPE_DOMAIN,
            "parent": parent,
            "graph": template,
            "call_site": call.call_site,
            "iteration": iteration,
            "maximum_iterations": call.maximum_iterations,
            "repeat_port": call.repeat_port,
            "return_routes": dict(call.return_routes),
        }
    )


def composed_node_id(scope: bytes, ordinal: int) -> str:
    """Name a node by its scope and its place among the template's nodes and ports."""
    return f"skc-{hashlib.sha256(scope).hexdigest()}-{ordinal:04}"


def composed_route_id(node_id: str, route_id: str) -> str:
    """Name a route of the composed node `node_id`."""
    preimage = {"domain": _ROUTE_DOMAIN, "node_id": node_id, "route_id": route_id}
    return f"skr-{hashlib.sha256(canonical_bytes(preimage)).hexdigest()}"


def claim_identity(taken: set[str], node_id: str) -> None:
    """Refuse a generated id that some node already has; two nodes would become one."""
    if node_id in taken:
        raise GraphError(
            f"generated node id {node_id} is already taken; rename the node",
            kind="IdentityCollision",
            owner=OWNER,
        )
    taken.add(node_id)
