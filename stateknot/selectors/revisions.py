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
from stateknot.kernel.profile import decode
from stateknot.models import GraphRevision, Run
from stateknot.registry import list_graphs

if TYPE_CHECKING:
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


def list_revisions(graph_id: str | None = None) -> list[RevisionFacts]:
    """Every known revision, by graph id, of each graph the newest last."""
    using = get_settings().database
    here = {facts.digest: facts for facts in list_registered()}
    runs = _runs_by_digest(using)
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
