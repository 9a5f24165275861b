"""The values a definition is made of, each valid from the moment it exists.

Every constructor sorts what has no order and raises GraphError with all that is wrong
with that one part. What only the whole graph can tell (missing successors, routes used
twice) is the business of `definition_rules.py`, read next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from stateknot.kernel.definition_issues import IssueCollector, shown
from stateknot.kernel.identifiers import (
    check_capability_name,
    check_digest,
    check_issuer,
    check_node_id,
    check_route_id,
    check_schema_id,
    check_subject,
    check_version,
)
from stateknot.kernel.limits import (
    MAXIMUM_NODES,
    MAXIMUM_PARALLELISM,
    MAXIMUM_ROUTES_OF_NODE,
    MAXIMUM_SUPERSTEPS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphIdentity:
    """Who answers for a graph or a reducer (issuer, subject), and what it is called.

    `version` is the author's label; the digest is what tells two revisions apart.
    """

    issuer: str
    subject: str
    name: str
    version: str

    def __post_init__(self) -> None:
        found = IssueCollector()
        found.extend(check_issuer(self.issuer))
        found.extend(check_subject(self.subject))
        found.extend(check_capability_name(self.name))
        found.extend(check_version(self.version))
        found.raise_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReference:
    """Which document a value obeys: its id (a URI), version and digest."""

    id: str
    version: str
    digest: str

    def __post_init__(self) -> None:
        found = IssueCollector()
        found.extend(check_schema_id(self.id))
        found.extend(check_version(self.version))
        found.extend(check_digest(self.digest))
        found.raise_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducerReference:
    """Which fold makes a state of updates: its name and the digest of what it says."""

    identity: GraphIdentity
    definition_digest: str

    def __post_init__(self) -> None:
        found = IssueCollector()
        found.extend(check_digest(self.definition_digest))
        found.raise_any()


@dataclass(frozen=True, slots=True, init=False)
class GraphRoute:
    """One label a node may choose, and the nodes it leads to (one or more)."""

    route_id: str
    successors: tuple[str, ...]

    def __init__(self, route_id: str, successors: Iterable[str]) -> None:
        found = IssueCollector()
        found.extend(check_route_id(route_id))
        ids = found.attempt(ready_set, successors)
        if ids == ():
            found.add(
                "GraphRoute",
                "EmptySuccessors",
                f"route {shown(route_id)} leads nowhere; give it a successor",
            )
        found.raise_any()
        object.__setattr__(self, "route_id", route_id)
        object.__setattr__(self, "successors", ids)


@dataclass(frozen=True, slots=True, init=False)
class GraphNode:
    """One place of a graph with its ways out: continue, routes, wait, terminal.

    A node has at least one way out and may have several of them. `extended=True` says
    that its way out is one of the definition's extensions (a waiting edge, a command
    destination, a route to the end), so that it may have none here.
    """

    node_id: str
    continue_to: tuple[str, ...] | None
    routes: tuple[GraphRoute, ...]
    wait_to: tuple[str, ...] | None
    terminal: bool
    extended: bool = field(compare=False, repr=False)

    def __init__(
        self,
        node_id: str,
        *,
        continue_to: Iterable[str] | None = None,
        routes: Iterable[GraphRoute] = (),
        wait_to: Iterable[str] | None = None,
        terminal: bool = False,
        extended: bool = False,
    ) -> None:
        found = IssueCollector()
        found.extend(check_node_id(node_id))
        onward = found.attempt(_optional_set, continue_to)
        labelled = found.attempt(_sorted_routes, routes)
        waiting = found.attempt(_optional_set, wait_to)
        if () in (onward, waiting):
            _refuse_empty_sets(found, node_id, onward, waiting)
        has_way_out = terminal or extended or labelled != ()
        if continue_to is None and wait_to is None and not has_way_out:
            _refuse_no_way_out(found, node_id)
        found.raise_any()
        values = (node_id, onward, labelled, waiting, terminal, extended)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def successor_sets(self) -> list[tuple[str, ...]]:
        """Its successor sets in canonical order: continue, routes by id, wait."""
        return [
            *([self.continue_to] if self.continue_to is not None else ()),
            *(route.successors for route in self.routes),
            *([self.wait_to] if self.wait_to is not None else ()),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLimits:
    """How long a run may get, and how wide a ready set; both bounds inclusive."""

    maximum_supersteps: int
    maximum_parallelism: int = MAXIMUM_PARALLELISM

    def __post_init__(self) -> None:
        found = IssueCollector()
        steps, width = self.maximum_supersteps, self.maximum_parallelism
        if steps < 1:
            found.add("Limits", "ZeroSupersteps", _at_least_one("supersteps", steps))
        if steps > MAXIMUM_SUPERSTEPS:
            found.add(
                "Limits",
                "SuperstepsAboveFrameworkMaximum",
                f"maximum_supersteps is {steps}, above 2^63-1",
            )
        if width < 1:
            found.add("Limits", "ZeroParallelism", _at_least_one("parallelism", width))
        if width > MAXIMUM_PARALLELISM:
            found.add(
                "Limits",
                "ParallelismAboveFrameworkMaximum",
                f"maximum_parallelism is {width}, above {MAXIMUM_PARALLELISM}",
            )
        found.raise_any()


def ready_set(ids: Iterable[str]) -> tuple[str, ...]:
    """Order node ids as a ready set: ascending, each once, at most 1,024.

    Raises GraphError `ReadyNodes.Duplicate` or `.TooMany`, or `InvalidId`. May be
    empty: who uses it says whether that is allowed.
    """
    found = IssueCollector()
    if isinstance(ids, str):
        found.add("ReadyNodes", "WrongType", f"{shown(ids)} must be a list of node ids")
        found.raise_any()
    seen: set[str] = set()
    for node_id in islice(ids, MAXIMUM_NODES + 1):
        faults = check_node_id(node_id)
        found.extend(faults)
        if not faults and node_id in seen:
            found.add("ReadyNodes", "Duplicate", f"{shown(node_id)} is named twice")
        elif not faults and len(seen) >= MAXIMUM_NODES:
            found.add("ReadyNodes", "TooMany", f"more than {MAXIMUM_NODES} node ids")
        elif not faults:
            seen.add(node_id)
    found.raise_any()
    return tuple(sorted(seen))


def _optional_set(ids: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if ids is None else ready_set(ids)


def _sorted_routes(routes: Iterable[GraphRoute]) -> tuple[GraphRoute, ...]:
    found = IssueCollector()
    table: dict[str, GraphRoute] = {}
    for index, route in enumerate(islice(routes, MAXIMUM_ROUTES_OF_NODE + 1)):
        if index >= MAXIMUM_ROUTES_OF_NODE:
            found.add(
                "GraphRoutes",
                "TooMany",
                f"more than {MAXIMUM_ROUTES_OF_NODE} routes on one node",
            )
        elif route.route_id in table:
            found.add(
                "GraphRoutes",
                "Duplicate",
                f"route {shown(route.route_id)} is given twice on one node; give one "
                "route both successors",
            )
        table[route.route_id] = route
    found.raise_any()
    return tuple(table[route_id] for route_id in sorted(table))


def _refuse_empty_sets(
    found: IssueCollector,
    node_id: str,
    onward: tuple[str, ...] | None,
    waiting: tuple[str, ...] | None,
) -> None:
    if onward == ():
        found.add(
            "GraphNode",
            "EmptyContinueSuccessors",
            f"node {shown(node_id)} continues to nothing; leave continue_to out",
        )
    if waiting == ():
        found.add(
            "GraphNode",
            "EmptyWaitSuccessors",
            f"node {shown(node_id)} waits for nothing; leave wait_to out",
        )


def _refuse_no_way_out(found: IssueCollector, node_id: str) -> None:
    found.add(
        "GraphNode",
        "NoControlOutcome",
        f"node {shown(node_id)} has no way out; give it a successor, a route or a "
        "wait, or mark it terminal",
    )


def _at_least_one(what: str, value: int) -> str:
    return f"maximum_{what} is {value}; it must be at least 1"
