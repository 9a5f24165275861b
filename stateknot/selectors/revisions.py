"""Asking for graph revisions: what this process has code for, what the database knows.

A revision may be known to both, to the process alone (nothing was started yet) or to
the database alone (its code is gone, or stands elsewhere).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db.models import Count

from stateknot.conf import get_settings
from stateknot.errors import NotFoundError
from stateknot.kernel.profile import decode
from stateknot.models import GraphRevision, Run
from stateknot.registry import find_graph, list_graphs
from stateknot.storage.rows import as_key

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.runtime.graph import CompiledGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFacts:
    """One revision of a graph. `state` is empty where the database does not know it;
    `runs` counts by status."""

    graph_id: str
    version: str
    digest: str
    nodes: int
    is_registered: bool
    state: str = ""
    runs: Mapping[str, int] = field(default_factory=dict)


def list_registered() -> list[RevisionFacts]:
    """The revisions that this process has code for; asks no database."""
    return [_of_code(graph) for graph in list_graphs()]


def list_revisions(
    graph_id: str | None = None, *, with_runs: bool = True
) -> list[RevisionFacts]:
    """Every known revision, by graph id, of each graph the newest last.

    Runs are counted over all threads; not everybody may know how many there are.
    """
    using = get_settings().database
    here = {facts.digest: facts for facts in list_registered()}
    runs = _runs_by_digest(using) if with_runs else defaultdict(dict)
    rows = GraphRevision.objects.using(using).order_by("first_seen_at", "id")
    known = [_of_row(row, row.digest in here, runs[row.digest]) for row in rows]
    digests = {facts.digest for facts in known}
    new = [facts for digest, facts in here.items() if digest not in digests]
    every = [f for f in (*known, *new) if graph_id in (None, f.graph_id)]
    return sorted(every, key=lambda facts: facts.graph_id)


def _runs_by_digest(using: str) -> dict[str, dict[str, int]]:
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    rows = Run.objects.using(using).values_list("revision__digest", "status")
    for digest, status, count in rows.annotate(count=Count("id")).order_by("status"):
        counted[digest][status] = count
    return counted


def _of_code(graph: CompiledGraph) -> RevisionFacts:
    return RevisionFacts(
        graph_id=graph.graph_id,
        version=graph.version,
        digest=graph.digest,
        nodes=len(graph.blueprint.nodes),
        is_registered=True,
    )


def _of_row(
    row: GraphRevision, is_registered: bool, runs: dict[str, int]
) -> RevisionFacts:
    return RevisionFacts(
        graph_id=row.graph_id,
        version=row.version,
        digest=row.digest,
        nodes=len(decode(row.definition).get("nodes", ())),
        is_registered=is_registered,
        state=row.state,
        runs=runs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionDetail:
    """A revision with its canonical definition; `graph` is its code, where it is."""

    facts: RevisionFacts
    definition: Mapping[str, JsonValue]
    graph: CompiledGraph | None


def get_revision(graph_id: str, digest: str) -> RevisionDetail:
    """One revision, known to this process or to the database. Raises NotFoundError."""
    graph = find_graph(graph_id, digest=digest)
    rows = GraphRevision.objects.using(get_settings().database)
    row = rows.filter(graph_id=as_key(graph_id), digest=as_key(digest)).first()
    if row is not None:
        facts = _of_row(row, graph is not None, {})
        definition = decode(row.definition)
        return RevisionDetail(facts=facts, definition=definition, graph=graph)
    if graph is None:
        raise NotFoundError(f"graph {graph_id!r} has no revision {digest!r}")
    definition = graph.definition.to_dict()
    return RevisionDetail(facts=_of_code(graph), definition=definition, graph=graph)
