"""Asking for the state of threads, as values of the graph's model where it is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.conf import get_settings
from stateknot.models import Thread
from stateknot.registry import find_graph
from stateknot.runtime.execution import may_have_questions, snapshot_of
from stateknot.selectors.matching import having_members
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from stateknot.kernel.records import CheckpointRecord
    from stateknot.kernel.state import StateCodec
    from stateknot.runtime.execution import StateSnapshot


def get_state(thread_id: str, checkpoint_id: str | None = None) -> StateSnapshot | None:
    """The newest checkpoint of a thread, or the one named; None if unknown."""
    store = DjangoCheckpointer()
    record = store.find_checkpoint(thread_id, checkpoint_id)
    return None if record is None else _snapshots(store, [record])[0]


def get_state_history(
    thread_id: str, limit: int | None = None, before: str | None = None
) -> list[StateSnapshot]:
    """The newest checkpoint of a thread and its ancestors, newest first."""
    store = DjangoCheckpointer()
    return _snapshots(
        store, store.list_checkpoints(thread_id, limit=limit, before=before)
    )


def list_threads(
    *,
    graph_id: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    metadata: Iterable[tuple[str, str]] = (),
) -> QuerySet[Thread]:
    """Threads with their current run that match every filter; a lazy queryset.

    `since` is when they began, inclusive; status and metadata are the run's.
    """
    filters = {
        "graph_id": graph_id,
        "current_run__status": status,
        "created_at__gte": since,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    rows = Thread.objects.using(get_settings().database).filter(**given)
    found = having_members(rows, "current_run__metadata", metadata)
    return found.select_related("current_run__revision", "current_run__thread")


def _snapshots(
    store: DjangoCheckpointer, records: Sequence[CheckpointRecord]
) -> list[StateSnapshot]:
    if not records:
        return []
    thread_id = records[0].thread_id
    waits = store.list_waits(thread_id) if may_have_questions(records) else []
    codec = find_codec(store, thread_id)
    return [snapshot_of(record, waits, codec) for record in records]


def find_codec(store: DjangoCheckpointer, thread_id: str) -> StateCodec | None:
    """How this process reads the thread's states; None where its graph is not here."""
    run = store.find_thread_run(thread_id)
    graph = run and find_graph(run.graph_id, digest=run.digest)
    return graph.blueprint.fold.codec if graph else None
