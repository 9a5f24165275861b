"""The canonical definition of a graph, whose digest names the graph revision.

`GraphDefinition.compile` takes the parts (values or their JSON form), applies every
rule of the closed vocabulary and freezes the canonical bytes. It knows no handlers and
no state model. The parts stand in `definition_parts.py`, the rules in
`definition_rules.py`, the JSON form in `definition_wire.py`; what a definition may hold
beyond the closed vocabulary in `definition_extensions.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from stateknot.kernel.canonical import canonical_bytes, digest_of
from stateknot.kernel.definition_extensions import (
    EXTENSION_KEYS,
    Extensions,
    read_extensions,
)
from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.definition_parts import (
    GraphIdentity,
    GraphLimits,
    GraphNode,
    GraphRoute,
    ReducerReference,
    SchemaReference,
    ready_set,
)
from stateknot.kernel.definition_rules import (
    OWNER,
    check_entry,
    check_extensions,
    check_paths,
    check_successors,
    collect_nodes,
)
from stateknot.kernel.definition_wire import (
    WireDefinition,
    check_wire,
    parse_json,
    read_limits,
    read_node,
    read_part,
    write_identity,
    write_limits,
    write_nodes,
    write_reducer,
    write_schema,
)
from stateknot.kernel.limits import MAXIMUM_DEFINITION_BYTES, MAXIMUM_NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.vocabulary import JsonValue

__all__ = [
    "EXTENSION_KEYS",
    "Extensions",
    "GraphDefinition",
    "GraphIdentity",
    "GraphLimits",
    "GraphNode",
    "GraphRoute",
    "ReducerReference",
    "SchemaReference",
    "ready_set",
]

_SCHEMAS = ("input_schema", "state_schema", "update_schema", "output_schema")
_PARTS: dict[str, type[Any]] = {
    "identity": GraphIdentity,
    **dict.fromkeys(_SCHEMAS, SchemaReference),
    "reducer": ReducerReference,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDefinition:
    """One immutable compiled graph: made by `compile` or `from_dict`, never by hand.

    `entry_nodes` and `nodes` are in id order. Two definitions are equal when their
    digests are.
    """

    identity: GraphIdentity = field(compare=False)
    input_schema: SchemaReference = field(compare=False)
    state_schema: SchemaReference = field(compare=False)
    update_schema: SchemaReference = field(compare=False)
    output_schema: SchemaReference = field(compare=False)
    reducer: ReducerReference = field(compare=False)
    entry_nodes: tuple[str, ...] = field(compare=False)
    nodes: tuple[GraphNode, ...] = field(compare=False, repr=False)
    limits: GraphLimits = field(compare=False)
    extensions: Extensions = field(compare=False, default_factory=Extensions)
    digest: str = field(init=False)
    _bytes: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        data = canonical_bytes(self.to_dict())
        object.__setattr__(self, "_bytes", data)
        object.__setattr__(self, "digest", digest_of(data))

    @classmethod
    def compile(
        cls,
        *,
        identity: GraphIdentity | Mapping[str, JsonValue],
        input_schema: SchemaReference | Mapping[str, JsonValue],
        state_schema: SchemaReference | Mapping[str, JsonValue],
        update_schema: SchemaReference | Mapping[str, JsonValue],
        output_schema: SchemaReference | Mapping[str, JsonValue],
        reducer: ReducerReference | Mapping[str, JsonValue],
        entry_nodes: Iterable[str],
        nodes: Iterable[GraphNode | Mapping[str, JsonValue]],
        limits: GraphLimits | Mapping[str, JsonValue],
        extensions: Mapping[str, JsonValue] | None = None,
        require_reachable: bool = True,
    ) -> GraphDefinition:
        """Check the parts, then the graph they make, and freeze it.

        `extensions` holds keys of EXTENSION_KEYS in the shapes that
        `definition_extensions.py` gives. With `require_reachable=False` nodes that
        nothing reaches, or that reach no boundary, pass: undeclared gotos may.

        Raises GraphError: of the parts that are wrong, else of the rules of the graph
        that are broken; `issues` has all of them.
        """
        given = {
            "identity": identity,
            "input_schema": input_schema,
            "state_schema": state_schema,
            "update_schema": update_schema,
            "output_schema": output_schema,
            "reducer": reducer,
        }
        parts = _read_parts(given, limits, entry_nodes, extensions)
        node_list = _read_nodes(nodes, parts["extensions"])
        table = _check_rules(node_list, require_reachable=require_reachable, **parts)
        definition = cls(nodes=tuple(table.values()), **parts)
        definition._require_size()
        return definition

    @classmethod
    def from_dict(
        cls, data: Mapping[str, JsonValue], *, require_reachable: bool = True
    ) -> GraphDefinition:
        """Read the JSON form, with or without its `definition_digest`.

        Raises GraphError: GraphWire for unknown, missing or mistyped keys, everything
        that `compile` raises, and DigestMismatch when the digest is another.
        """
        wire = check_wire(WireDefinition, data, at="definition")
        keys = wire.model_fields_set
        names = WireDefinition.model_fields.keys() - EXTENSION_KEYS
        definition = cls.compile(
            **{name: getattr(wire, name) for name in names - {"definition_digest"}},
            extensions={key: data[key] for key in EXTENSION_KEYS & keys},
            require_reachable=require_reachable,
        )
        if wire.definition_digest not in (None, definition.digest):
            found = IssueCollector()
            found.add(
                OWNER,
                "DigestMismatch",
                f"definition_digest is {shown(wire.definition_digest)}, but this "
                f"definition has {definition.digest}; it was changed since",
            )
            found.raise_any()
        return definition

    @classmethod
    def from_json(
        cls, text: str | bytes, *, require_reachable: bool = True
    ) -> GraphDefinition:
        """Read the JSON text of a definition; a key given twice is refused as well."""
        data = parse_json(text)
        return cls.from_dict(data, require_reachable=require_reachable)

    def to_dict(self) -> dict[str, JsonValue]:
        """The definition object: what the canonical bytes are of, in new containers."""
        return {
            "identity": write_identity(self.identity),
            **{name: write_schema(getattr(self, name)) for name in _SCHEMAS},
            "reducer": write_reducer(self.reducer),
            "entry_nodes": list(self.entry_nodes),
            "nodes": write_nodes(self.nodes),
            "limits": write_limits(self.limits),
            **self.extensions.to_dict(),
        }

    def to_wire(self) -> dict[str, JsonValue]:
        """The stored form: the definition object with its `definition_digest`."""
        return {**self.to_dict(), "definition_digest": self.digest}

    def canonical_bytes(self) -> bytes:
        """RFC 8785 bytes of the definition object; the digest is their SHA-256."""
        return self._bytes

    def reference(self) -> dict[str, JsonValue]:
        """The three keys by which records name this graph."""
        return {
            "identity": write_identity(self.identity),
            "definition_digest": self.digest,
            "state_schema": write_schema(self.state_schema),
        }

    def node(self, node_id: str) -> GraphNode:
        """Get one node. Raises KeyError for an id that is not in the graph."""
        at = bisect_left(self.nodes, node_id, key=lambda node: node.node_id)
        if at == len(self.nodes) or self.nodes[at].node_id != node_id:
            raise KeyError(node_id)
        return self.nodes[at]

    def _require_size(self) -> None:
        if len(self._bytes) > MAXIMUM_DEFINITION_BYTES:
            found = IssueCollector()
            found.add(
                OWNER,
                "DefinitionTooLarge",
                f"the definition has {len(self._bytes)} canonical bytes, above "
                f"{MAXIMUM_DEFINITION_BYTES}; split the graph",
            )
            found.raise_any()


def _read_parts(
    given: Mapping[str, Any], limits: Any, entry: Any, extensions: Any
) -> dict[str, Any]:
    """Read all parts but the nodes; the keys are the fields of GraphDefinition."""
    found = IssueCollector()
    parts = {
        name: found.attempt(partial(read_part, _PARTS[name], at=name), value)
        for name, value in given.items()
    }
    parts["limits"] = found.attempt(read_limits, limits)
    parts["entry_nodes"] = found.attempt(ready_set, entry)
    parts["extensions"] = found.attempt(read_extensions, extensions)
    found.raise_any()
    return parts


def _read_nodes(nodes: Iterable[Any], extensions: Extensions) -> list[GraphNode]:
    found = IssueCollector()
    read = partial(read_node, with_way_out=extensions.nodes_with_way_out())
    # One over the ceiling is enough to refuse the rest without reading it.
    offered = islice(nodes, MAXIMUM_NODES + 1)
    node_list = [found.attempt(read, node) for node in offered]
    found.raise_any()
    return node_list


def _check_rules(
    nodes: list[GraphNode],
    *,
    entry_nodes: tuple[str, ...],
    limits: GraphLimits,
    extensions: Extensions,
    require_reachable: bool,
    **_: object,
) -> dict[str, GraphNode]:
    found = IssueCollector()
    table = collect_nodes(found, nodes, extensions)
    check_entry(found, entry_nodes, table, limits)
    check_successors(found, table, limits)
    check_extensions(found, table, extensions)
    if require_reachable:
        check_paths(found, entry_nodes, table, extensions)
    found.raise_any()
    return table
