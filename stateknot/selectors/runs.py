"""Asking for runs and their journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.conf import get_settings
from stateknot.models import Run
from stateknot.selectors.access import get_visible_run
from stateknot.selectors.matching import having_members
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from stateknot.kernel.records import JournalRecord
    from stateknot.models.querysets import RunQuerySet


def get_run(run_id: Any) -> Run:
    """The run, with its thread and revision. Raises NotFoundError."""
    return get_visible_run(None, run_id)


def list_runs(
    *,
    graph_id: str | None = None,
    status: str | None = None,
    thread_id: str | None = None,
    failed_node: str | None = None,
    root_run_id: UUID | None = None,
    since: datetime | None = None,
    metadata: Iterable[tuple[str, str]] = (),
) -> RunQuerySet:
    """Runs, newest first, that match every filter given; a lazy queryset.

    `since` is when they were admitted, inclusive; `metadata` are pairs of a name and
    its value as text, see `having_members`.
    """
    filters = {
        "graph_id": graph_id,
        "status": status,
        "thread__key": thread_id,
        "failed_node": failed_node,
        "root_run_id": root_run_id,
        "created_at__gte": since,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    rows: RunQuerySet = Run.objects.using(get_settings().database)
    found = having_members(rows.filter(**given), "metadata", metadata)
    return found.select_related("thread").order_by("-created_at", "-id")


def get_timeline(run_id: Any, after: int = -1) -> list[JournalRecord]:
    """The journal of a run behind row `after`, oldest first. Raises NotFoundError."""
    run = get_run(run_id)
    return DjangoCheckpointer().list_journal(str(run.id), after)
