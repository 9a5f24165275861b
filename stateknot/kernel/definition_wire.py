"""The JSON form of a definition: strict models, and the way to and from the values.

Owns the exact keys of the definition object (spec/composition.md, section 1.2). What is
unknown, missing or of another type is refused; what the ids and sets mean is checked by
the values themselves (`definition_parts.py`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from stateknot.errors import GraphError
from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.definition_parts import (
    GraphIdentity,
    GraphLimits,
    GraphNode,
    GraphRoute,
    ReducerReference,
    SchemaReference,
)
from stateknot.kernel.limits import MAXIMUM_DEFINITION_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.vocabulary import JsonValue

P = TypeVar("P")
W = TypeVar("W", bound="Wire")
_MAXIMUM_TEXT = 2 * MAXIMUM_DEFINITION_BYTES  # as stored, or spaced out by a person
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def _canonical_decimal(text: str) -> str:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("must be a decimal string without sign or leading zeros")
    return text


class Wire(BaseModel):
    """A JSON object with exactly the declared keys and JSON types."""

    model_config = ConfigDict(strict=True, extra="forbid")


class WireOwner(Wire):
    issuer: str
    subject: str


class WireCapability(Wire):
    name: str
    version: str


class WireIdentity(Wire):
    owner: WireOwner
    capability: WireCapability

    def read(self) -> GraphIdentity:
        return GraphIdentity(
            issuer=self.owner.issuer,
            subject=self.owner.subject,
            name=self.capability.name,
            version=self.capability.version,
        )


class WireSchema(Wire):
    id: str
    version: str
    digest: str

    def read(self) -> SchemaReference:
        return SchemaReference(id=self.id, version=self.version, digest=self.digest)


class WireReducer(Wire):
    identity: WireIdentity
    definition_digest: str

    def read(self) -> ReducerReference:
        return ReducerReference(
            identity=self.identity.read(), definition_digest=self.definition_digest
        )


class WireLimits(Wire):
    maximum_supersteps: Annotated[str, AfterValidator(_canonical_decimal)]
    maximum_parallelism: int

    def read(self) -> GraphLimits:
        return GraphLimits(
            maximum_supersteps=int(self.maximum_supersteps),
            maximum_parallelism=self.maximum_parallelism,
        )


class WireRoute(Wire):
    route_id: str
    successors: list[str]

    def read(self) -> GraphRoute:
        return GraphRoute(self.route_id, self.successors)


class WireNode(Wire):
    node_id: str
    continue_to: list[str] | None = None
    routes: list[WireRoute]
    wait_to: list[str] | None = None
    terminal: bool

    def read(self, *, extended: bool = False) -> GraphNode:
        found = IssueCollector()
        routes = [found.attempt(WireRoute.read, route) for route in self.routes]
        found.raise_any()
        return GraphNode(
            self.node_id,
            continue_to=self.continue_to,
            routes=routes,
            wait_to=self.wait_to,
            terminal=self.terminal,
            extended=extended,
        )


class WireRelief(Wire):
    source: str
    relief: str
    barrier: str


class WireDefinition(Wire):
    identity: WireIdentity
    input_schema: WireSchema
    state_schema: WireSchema
    update_schema: WireSchema
    output_schema: WireSchema
    reducer: WireReducer
    entry_nodes: list[str]
    nodes: list[WireNode]
    limits: WireLimits
    definition_digest: str | None = None
    waiting_edges: Any = None
    barrier_reliefs: Any = None
    command_nodes: Any = None
    end_routes: Any = None


def check_wire(model: type[W], data: JsonValue, *, at: str) -> W:
    """Check `data` against `model`; `at` is where it stands, for the message.

    Raises GraphError of owner GraphWire: UnknownKey, MissingKey or WrongType.
    """
    found = IssueCollector()
    try:
        return model.model_validate(data)
    except ValidationError as error:
        add_wire_issues(found, error, at=at)
    found.raise_any()
    raise AssertionError("a ValidationError holds at least one error")


_MODELS: dict[type, type[Any]] = {
    GraphIdentity: WireIdentity,
    SchemaReference: WireSchema,
    ReducerReference: WireReducer,
    GraphLimits: WireLimits,
}


def read_part(kind: type[P], value: Any, *, at: str) -> P:
    """Take a part as it is, or read it from its JSON form (an object or its model)."""
    if isinstance(value, kind):
        return value
    model = _MODELS[kind]
    wire = value if isinstance(value, model) else check_wire(model, value, at=at)
    return cast("P", wire.read())


def read_limits(value: Any) -> GraphLimits:
    """Like `read_part`; an author may write the supersteps as a number."""
    if isinstance(value, dict) and type(value.get("maximum_supersteps")) is int:
        value = {**value, "maximum_supersteps": str(value["maximum_supersteps"])}
    return read_part(GraphLimits, value, at="limits")


def read_node(value: Any, *, with_way_out: frozenset[str]) -> GraphNode:
    """Like `read_part`; an author may leave out `routes` and `terminal`."""
    if isinstance(value, GraphNode):
        return value
    if isinstance(value, dict):
        data = {"routes": [], "terminal": False, **value}
        value = check_wire(WireNode, data, at=f"nodes[{shown(value.get('node_id'))}]")
    elif not isinstance(value, WireNode):
        value = check_wire(WireNode, value, at="nodes")
    wire = cast("WireNode", value)
    return wire.read(extended=wire.node_id in with_way_out)


def add_wire_issues(found: IssueCollector, error: ValidationError, *, at: str) -> None:
    """Turn what pydantic found into issues, with the path to each."""
    kinds = {"extra_forbidden": "UnknownKey", "missing": "MissingKey"}
    for fault in error.errors(include_url=False, include_context=False):
        path = ".".join([at, *map(str, fault["loc"])])
        kind = kinds.get(fault["type"], "WrongType")
        got = "" if kind == "MissingKey" else f"; got {shown(fault['input'])}"
        found.add("GraphWire", kind, f"{path}: {fault['msg']}{got}")


def parse_json(text: str | bytes) -> JsonValue:
    """Parse the text of a definition, refusing what `json.loads` lets pass.

    A key given twice would let two readers see two graphs under one digest.
    """
    found = IssueCollector()
    if len(text) > _MAXIMUM_TEXT:
        found.add("GraphWire", "TooLarge", f"more than {_MAXIMUM_TEXT} bytes of JSON")
        found.raise_any()
    try:
        return json.loads(
            text, object_pairs_hook=_refuse_doubles, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        found.add("GraphWire", "NotJson", f"a definition must be JSON: {error}")
    found.raise_any()
    raise AssertionError("an issue was added")


def _refuse_doubles(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        text = f"key {shown(double)} is given twice in one object"
        raise GraphError(text, kind="DuplicateKey", owner="GraphWire")
    return data


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def write_identity(identity: GraphIdentity) -> dict[str, JsonValue]:
    return {
        "owner": {"issuer": identity.issuer, "subject": identity.subject},
        "capability": {"name": identity.name, "version": identity.version},
    }


def write_schema(schema: SchemaReference) -> dict[str, JsonValue]:
    return {"id": schema.id, "version": schema.version, "digest": schema.digest}


def write_reducer(reducer: ReducerReference) -> dict[str, JsonValue]:
    return {
        "identity": write_identity(reducer.identity),
        "definition_digest": reducer.definition_digest,
    }


def write_limits(limits: GraphLimits) -> dict[str, JsonValue]:
    """Supersteps as text, since they may pass 2^53; parallelism as a number."""
    return {
        "maximum_supersteps": str(limits.maximum_supersteps),
        "maximum_parallelism": limits.maximum_parallelism,
    }


def write_nodes(nodes: Iterable[GraphNode]) -> list[JsonValue]:
    return [_write_node(node) for node in nodes]


def _write_node(node: GraphNode) -> dict[str, JsonValue]:
    data: dict[str, JsonValue] = {
        "node_id": node.node_id,
        "routes": [
            {"route_id": route.route_id, "successors": list(route.successors)}
            for route in node.routes
        ],
        "terminal": node.terminal,
    }
    if node.continue_to is not None:
        data["continue_to"] = list(node.continue_to)
    if node.wait_to is not None:
        data["wait_to"] = list(node.wait_to)
    return data
