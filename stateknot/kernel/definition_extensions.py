"""What a definition may hold beyond the closed vocabulary, in keys of its own.

Each key is left out when it has nothing to say, so a graph that needs none of them has
the bytes it always had. The shapes, all of node and route ids:

- `waiting_edges`: `{target: [source, ...]}`, the target runs when all have arrived;
- `barrier_reliefs`: `[{"source": ..., "relief": ..., "barrier": ...}, ...]`, in the
  order in which they are evaluated;
- `command_nodes`: `{node: [destination, ...]}`, where a node's goto may lead, END
  included; empty when it does not say;
- `end_routes`: `{node: [route, ...]}`, the routes that end a branch.

This module knows shapes and edges; what is checked against the nodes stands in
`definition_rules.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stateknot.kernel.definition_issues import IssueCollector
from stateknot.kernel.definition_parts import ready_set
from stateknot.kernel.definition_wire import WireRelief, add_wire_issues
from stateknot.kernel.identifiers import check_node_id
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stateknot.kernel.vocabulary import JsonValue

EXTENSION_KEYS: Final = frozenset(
    {"waiting_edges", "barrier_reliefs", "command_nodes", "end_routes"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierRelief:
    """When `source` completes without taking `relief`, count it at `barrier`."""

    source: str
    relief: str
    barrier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """The extensions of one definition, sorted, with empty ones where it has none."""

    waiting_edges: dict[str, tuple[str, ...]] = field(default_factory=dict)
    barrier_reliefs: tuple[BarrierRelief, ...] = ()
    command_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    end_routes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, JsonValue]:
        """The extra keys of the definition object: new containers, no empty one."""
        keys: dict[str, JsonValue] = {
            "waiting_edges": _lists(self.waiting_edges),
            "barrier_reliefs": [asdict(relief) for relief in self.barrier_reliefs],
            "command_nodes": _lists(self.command_nodes),
            "end_routes": _lists(self.end_routes),
        }
        return {key: value for key, value in keys.items() if value}

    def edges(self) -> Iterator[tuple[str, str]]:
        """Yield (from, to) of all it adds to the graph's edges."""
        for target, sources in self.waiting_edges.items():
            for source in sources:
                yield source, target
        for node_id, destinations in self.command_nodes.items():
            for destination in destinations:
                if destination != END:
                    yield node_id, destination

    def ends(self) -> list[str]:
        """Nodes from which a branch may end, as far as the extensions say."""
        commands = [one for one, leads in self.command_nodes.items() if END in leads]
        return [*self.end_routes, *commands]

    def named_nodes(self) -> Iterator[tuple[str, str]]:
        """Yield (key, node id) of every node that an extension names."""
        for target, sources in self.waiting_edges.items():
            yield from (("waiting_edges", named) for named in (target, *sources))
        for relief in self.barrier_reliefs:
            for named in (relief.source, relief.relief, relief.barrier):
                yield "barrier_reliefs", named
        for node_id, destinations in self.command_nodes.items():
            named_ids = (node_id, *(one for one in destinations if one != END))
            yield from (("command_nodes", named) for named in named_ids)
        for node_id in self.end_routes:
            yield "end_routes", node_id

    def nodes_with_way_out(self) -> frozenset[str]:
        """Nodes that have a way out here, whatever their own entry says."""
        sources = (source for edge in self.waiting_edges.values() for source in edge)
        return frozenset([*sources, *self.command_nodes, *self.end_routes])


_RELIEFS = TypeAdapter(list[WireRelief])
_SETS = TypeAdapter(dict[str, list[str]], config=ConfigDict(strict=True))


def read_extensions(data: Mapping[str, JsonValue] | None) -> Extensions:
    """Read the extra keys of a definition, sorting what has no order.

    Raises GraphError for keys that are not in EXTENSION_KEYS and for other shapes than
    those above.
    """
    found = IssueCollector()
    given = dict(data or {})
    reliefs = found.attempt(_read_reliefs, given.pop("barrier_reliefs", []))
    sets = {
        key: found.attempt(_read_sets, (key, given.pop(key, {})))
        for key in ("waiting_edges", "command_nodes", "end_routes")
    }
    for key in sorted(given):
        found.add(
            "GraphExtensions",
            "UnknownKey",
            f"extension {key!r} is not known; use one of {sorted(EXTENSION_KEYS)}",
        )
    found.raise_any()
    return Extensions(barrier_reliefs=reliefs, **sets)


def _read_sets(entry: tuple[str, JsonValue]) -> dict[str, tuple[str, ...]]:
    key, data = entry
    found = IssueCollector()
    try:
        sets = _SETS.validate_python(data)
    except ValidationError as error:
        add_wire_issues(found, error, at=key)
        sets = {}
    order = _destinations if key == "command_nodes" else ready_set
    ordered = {name: found.attempt(order, sets[name]) for name in sorted(sets)}
    found.raise_any()
    return ordered


def _destinations(ids: Iterable[str]) -> tuple[str, ...]:
    """A ready set that may hold END, which is no node."""
    given = list(ids)
    nodes = ready_set(one for one in given if one != END)
    return tuple(sorted([*nodes, END])) if END in given else nodes


def _read_reliefs(data: JsonValue) -> tuple[BarrierRelief, ...]:
    found = IssueCollector()
    wires: list[WireRelief] = []
    try:
        wires = _RELIEFS.validate_python(data)
    except ValidationError as error:
        add_wire_issues(found, error, at="barrier_reliefs")
    for wire in wires:
        for node_id in (wire.source, wire.relief, wire.barrier):
            found.extend(check_node_id(node_id))
    found.raise_any()
    return tuple(BarrierRelief(**wire.model_dump()) for wire in wires)


def _lists(sets: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {key: list(ids) for key, ids in sets.items()}
