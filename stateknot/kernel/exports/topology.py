"""The exported form of a graph and its JSON.

Everything is sorted, so that equal graphs export equal text. JSON leaves out what is
empty and reads back equal. Read `drawing.py` for pictures of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.errors import SerializationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyNode:
    """A node. `routing` says how it leads on: `command`, `conditional`, `waiting` (only
    joins), `static` or `terminal`; `goto` are its declared destinations. `source` says
    where a composed node comes from: `call_site`, `node_id`, `iteration` from 0."""

    id: str
    kind: str = "node"
    routing: str = "terminal"
    markers: tuple[str, ...] = ()
    goto: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyCall:
    """A call of the body named, in place of the node `site`: up to
    `maximum_iterations` times, again through the port `repeat` where that is known."""

    site: str
    body: str
    maximum_iterations: int
    repeat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRoutes:
    """Where the labels of a node lead, and the router that chooses among them."""

    source: str
    routes: Mapping[str, tuple[str, ...]]
    router: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyJoin:
    """A node that runs once all its sources have arrived."""

    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRelief:
    """`relief` counts as arrived at `barrier` when `source` did not take it."""

    source: str
    relief: str
    barrier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What is wrong with a graph, and what may be."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether it compiles."""
        return not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A graph as data. START and END are not among the nodes: `entry` and `finish` say
    where it begins and may end."""

    graph_id: str
    name: str
    entry: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    nodes: tuple[TopologyNode, ...] = ()
    edges: Pairs = ()
    conditional_edges: tuple[TopologyRoutes, ...] = ()
    waiting_edges: tuple[TopologyJoin, ...] = ()
    wait_edges: Pairs = ()
    reliefs: tuple[TopologyRelief, ...] = ()
    calls: tuple[TopologyCall, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    validation: Validation = field(default_factory=Validation)

    def to_dict(self) -> dict[str, Any]:
        """The form that JSON holds; empty parts are left out."""
        data: dict[str, Any] = _plain(self)
        return data

    def to_json(self) -> str:
        """The JSON, indented, the same text for the same graph."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Topology:
        """Read what `to_json` wrote. Raises SerializationError for anything else."""
        try:
            return _read_topology(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SerializationError(f"this is no topology: {error!r}") from error


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        names = value.__dataclass_fields__
        items = {name: _plain(getattr(value, name)) for name in names}
        return {k: v for k, v in items.items() if v not in ("", [], {}, None)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _read_topology(data: dict[str, Any]) -> Topology:
    readers: dict[str, Callable[[Any], Any]] = {
        "entry": tuple,
        "finish": tuple,
        "nodes": lambda rows: tuple(_read_node(row) for row in rows),
        "edges": _read_pairs,
        "conditional_edges": lambda rows: tuple(_read_routes(row) for row in rows),
        "waiting_edges": lambda rows: tuple(_read_join(row) for row in rows),
        "wait_edges": _read_pairs,
        "reliefs": lambda rows: tuple(TopologyRelief(**row) for row in rows),
        "calls": lambda rows: tuple(TopologyCall(**row) for row in rows),
        "validation": _read_validation,
    }
    read = {
        key: readers[key](value) if key in readers else value
        for key, value in data.items()
    }
    return Topology(**read)


def _read_pairs(rows: list[list[str]]) -> Pairs:
    return tuple((source, target) for source, target in rows)


def _read_node(row: dict[str, Any]) -> TopologyNode:
    lists = {key: tuple(row.get(key, ())) for key in ("markers", "goto")}
    return TopologyNode(**{**row, **lists})


def _read_routes(row: dict[str, Any]) -> TopologyRoutes:
    routes = {label: tuple(targets) for label, targets in row["routes"].items()}
    return TopologyRoutes(
        source=row["source"], routes=routes, router=row.get("router", "")
    )


def _read_join(row: dict[str, Any]) -> TopologyJoin:
    return TopologyJoin(target=row["target"], sources=tuple(row["sources"]))


def _read_validation(row: dict[str, Any]) -> Validation:
    return Validation(**{key: tuple(texts) for key, texts in row.items()})
