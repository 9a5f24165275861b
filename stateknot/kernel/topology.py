"""What is wrong with a graph before it is compiled: every issue, in a fixed order.

`check_draft` looks at what a builder collected and gives all errors; the order is that
of `check_*` below, so the first is always the same. It runs nothing of the author's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    GraphError,
    MissingNodeError,
    MissingStartError,
    ValidationError,
)
from stateknot.kernel.handlers import is_async
from stateknot.kernel.vocabulary import END, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stateknot.kernel.blueprint import NodeSpec, Relief


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDraft:
    """A subgraph call as its author gave it; see `add_subgraph_call` of the builder."""

    call_site: str
    body: Any
    repeat: str | None
    maximum_iterations: int | None
    returns: Mapping[str, str]


@dataclass(slots=True)
class Draft:
    """What a builder collected, in the order it was given."""

    nodes: list[NodeSpec] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)
    routers: list[tuple[str, Callable[[Any], Any], Mapping[str, str]]] = field(
        default_factory=list
    )
    waiting: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    reliefs: list[Relief] = field(default_factory=list)
    calls: list[CallDraft] = field(default_factory=list)

    @property
    def known(self) -> set[str]:
        """The ids of the nodes."""
        return {spec.id for spec in self.nodes}


def check_draft(draft: Draft) -> list[GraphError]:
    """Every issue of the graph, empty when it compiles."""
    checks = (
        _entry,
        _edges,
        _routers,
        _waiting,
        _commands,
        _once,
        _reliefs,
        _calls,
        _duplicates,
    )
    return [issue for check in checks for issue in check(draft)]


def _missing(node: str, where: str, draft: Draft) -> MissingNodeError:
    known = ", ".join(sorted(draft.known)) or "no node at all"
    return MissingNodeError(f"{where} names {node!r}, the graph has {known}")


def _entry(draft: Draft) -> Iterator[GraphError]:
    entries = [target for source, target in draft.edges if source == START]
    if not entries:
        yield MissingStartError(
            "no edge leaves START; say where the graph begins with "
            'add_edge(START, "first")'
        )
    for target in entries:
        if target == END:
            yield ValidationError("the edge from START leads to END: nothing would run")
        elif target not in draft.known:
            yield _missing(target, "the edge from START", draft)


def _edges(draft: Draft) -> Iterator[GraphError]:
    known = draft.known
    for source, target in draft.edges:
        if source != START and source not in known:
            yield _missing(source, f"the edge {source!r} to {target!r}", draft)
        if source != START and target != END and target not in known:
            yield _missing(target, f"the edge {source!r} to {target!r}", draft)


def _routers(draft: Draft) -> Iterator[GraphError]:
    with_edges = {source for source, _ in draft.edges}
    seen: set[str] = set()
    for source, router, routes in draft.routers:
        where = f"the conditional edges of {source!r}"
        if source not in draft.known:
            yield _missing(source, "a conditional edge", draft)
        if source in with_edges:
            yield ValidationError(
                f"node {source!r} has plain edges and conditional edges; keep one kind "
                "(a router may return several labels)"
            )
        if source in seen:
            yield ValidationError(f"node {source!r} has two routers; keep one")
        seen.add(source)
        if not routes or not callable(router):
            yield ValidationError(
                f"{where} have no rule: give a router function and a mapping of its "
                "labels to nodes"
            )
        elif is_async(router):
            yield ValidationError(
                f"the router of {source!r} is async; it decides from the state alone, "
                "so let a node in front of it await what it needs"
            )
        for label, target in routes.items():
            if target != END and target not in draft.known:
                yield _missing(target, f"route {label!r} of {source!r}", draft)


def _waiting(draft: Draft) -> Iterator[GraphError]:
    for sources, target in draft.waiting:
        where = f"the waiting edge to {target!r}"
        for node in (target, *sources):
            if node not in draft.known:
                yield _missing(node, where, draft)
        if not sources:
            yield ValidationError(f"{where} waits for nothing; name its predecessors")
    targets = {source: set(routes.values()) for source, _, routes in draft.routers}
    for sources, target in draft.waiting:
        for source in sources:
            if source in targets and target not in targets[source]:
                yield ValidationError(
                    f"join {target!r} waits for {source!r}, whose router never leads "
                    "there; add it to the routes or take it out of the waiting edge"
                )


def _commands(draft: Draft) -> Iterator[GraphError]:
    sources = {source for source, _ in draft.edges}
    sources |= {source for source, _, _ in draft.routers}
    sources |= {source for group, _ in draft.waiting for source in group}
    for spec in draft.nodes:
        if spec.is_command and spec.id in sources:
            yield ValidationError(
                f"command node {spec.id!r} also has edges; it chooses its successors "
                "by goto, so take the edges away or add it as an ordinary node"
            )
        for target in spec.destinations:
            if target != END and target not in draft.known:
                yield _missing(target, f"a destination of {spec.id!r}", draft)


def _once(draft: Draft) -> Iterator[GraphError]:
    for spec in draft.nodes:
        if spec.runs_once:
            yield from (ValidationError(text) for text in _once_texts(spec))


def _once_texts(spec: NodeSpec) -> Iterator[str]:
    """What does not go together on a node that must not run twice."""
    kind = "transactional" if spec.transactional else "at-most-once"
    if spec.transactional and spec.at_most_once:
        yield (
            f"node {spec.id!r} is transactional and at-most-once; keep transactional "
            "for what it writes to the engine's database, at_most_once for others"
        )
    if spec.transactional and (
        spec.is_async or is_async(spec.on_error or spec.handler)
    ):
        yield (
            f"node {spec.id!r} is transactional and async; a transaction belongs to "
            "one thread's connection, so make the handler a plain function"
        )
    if isinstance(getattr(spec.handler, "kind", None), str):
        yield (
            f"node {spec.id!r} runs a graph and is {kind}; let nodes of that graph be "
            f"{kind}"
        )
    if spec.at_most_once and (spec.retry is not None or spec.on_error is not None):
        yield (
            f"node {spec.id!r} is at-most-once and has a retry policy or an error "
            "handler; it is never run again by itself, so catch what it can mend itself"
        )


def _calls(draft: Draft) -> Iterator[GraphError]:
    sources = {source for source, _ in draft.edges}
    sources |= {source for source, _, _ in draft.routers}
    for call in draft.calls:
        if call.call_site in sources:
            yield ValidationError(
                f"call-site {call.call_site!r} also has edges; say where its ports "
                "lead in returns= and take the edges away"
            )
        if (call.repeat is None) != (call.maximum_iterations is None):
            yield ValidationError(
                f"call-site {call.call_site!r} needs both repeat= and "
                "maximum_iterations= for a loop, or neither"
            )
        for port, target in call.returns.items():
            if target not in draft.known:
                yield _missing(target, f"port {port!r} of {call.call_site!r}", draft)
    for spec in draft.nodes:
        for target in spec.wait_to:
            if target not in draft.known:
                yield _missing(target, f"wait_to of {spec.id!r}", draft)


def _reliefs(draft: Draft) -> Iterator[GraphError]:
    joins = {target for _, target in draft.waiting}
    for relief in draft.reliefs:
        for node in (relief.source, relief.relief, relief.barrier):
            if node not in draft.known:
                yield _missing(node, f"the barrier relief at {relief.barrier!r}", draft)
        if relief.barrier in draft.known and relief.barrier not in joins:
            yield ValidationError(
                f"the barrier relief names {relief.barrier!r}, which waits for nothing"
            )


def _duplicates(draft: Draft) -> Iterator[GraphError]:
    seen: set[str] = set()
    for spec in draft.nodes:
        if spec.id in (START, END):
            yield ValidationError(f"node id {spec.id!r} is reserved; choose another")
        elif spec.id in seen:
            yield ValidationError(
                f"node {spec.id!r} was added twice; give the second another id",
                kind="DuplicateNode",
            )
        seen.add(spec.id)
