"""Rows of graph revisions, and which of them new runs begin on.

A digest that is seen for the first time is its graph's active revision; the ones before
drain, and are retired once no run stands on them. The state informs: which revision a
process starts runs on is what its code registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from stateknot.kernel.profile import encode
from stateknot.models import GraphRevision, Run
from stateknot.models.runs import HOLDING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.vocabulary import JsonValue

State = GraphRevision.State


def store_revision(
    *,
    digest: str,
    graph_id: str,
    version: str,
    definition: Mapping[str, JsonValue],
    source_map: Mapping[str, JsonValue],
    using: str,
) -> GraphRevision:
    """The row of a revision that a run is about to stand on.

    Transaction: the caller's.
    """
    revisions = GraphRevision.objects.using(using)
    revision, is_new = revisions.get_or_create(
        digest=digest,
        defaults={
            "graph_id": graph_id,
            "version": version,
            "definition": encode(dict(definition)),
            "source_map": encode(dict(source_map)) if source_map else None,
        },
    )
    if is_new:
        _let_others_drain(revision, using)
    elif revision.state == State.RETIRED:
        revision.state = State.DRAINING
        revision.save(using=using, update_fields=["state"])
    return revision


def _let_others_drain(revision: GraphRevision, using: str) -> None:
    others = GraphRevision.objects.using(using).exclude(id=revision.id)
    active = others.filter(graph_id=revision.graph_id, state=State.ACTIVE)
    active.update(state=State.DRAINING)


def activate_revision(digest: str, using: str) -> bool:
    """Make a revision its graph's active one; False when it was.

    For the revision that a process starts runs on by default: after a deploy was taken
    back, that is an older one again. Transaction: the caller's.
    """
    rows = GraphRevision.objects.using(using).filter(digest=digest)
    if not rows.exclude(state=State.ACTIVE).update(state=State.ACTIVE):
        return False
    _let_others_drain(rows.get(), using)
    return True


def retire_drained(using: str) -> int:
    """Retire draining revisions that no open run stands on; how many.

    One that got an open run again (a failed run that was retried) drains again.
    """
    open_runs = Run.objects.using(using).filter(
        revision=OuterRef("pk"), status__in=HOLDING
    )
    revisions = GraphRevision.objects.using(using)
    busy = revisions.filter(Exists(open_runs), state=State.RETIRED)
    busy.update(state=State.DRAINING)
    drained = revisions.filter(~Exists(open_runs), state=State.DRAINING)
    return drained.update(state=State.RETIRED)
