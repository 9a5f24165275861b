"""What a page about one run asks: where it stands, and pages of what happened.

Every list is a `Window`, so that a run of any length costs the same. States are put
together only for the checkpoint that is shown, never for the list of boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db.models import Count, Max, Min, Q

from stateknot.kernel.once import unfinished_failure
from stateknot.kernel.profile import decode
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.models import Checkpoint, JournalEvent, NodeAttempt
from stateknot.registry import find_graph
from stateknot.runtime.execution import may_have_questions, open_questions
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.rows import (
    as_uuid,
    attempt_record,
    journal_record,
    run_record,
    split_namespace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        JournalRecord,
        WaitRecord,
    )
    from stateknot.kernel.state import StateCodec
    from stateknot.models import Run
    from stateknot.runtime.graph import CompiledGraph

WINDOW = 50
"""Rows of one window: about what a person reads before asking for more."""

RowT = TypeVar("RowT")

_UNSUCCESSFUL = (AttemptStatus.FAILED.value, AttemptStatus.LOST.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Generic[RowT]):
    """The newest rows before a place, oldest first; `earlier` is the place of more."""

    rows: list[RowT]
    earlier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRow:
    """A boundary without its state. `completed` and `next_nodes` are node ids.

    `tries` counts the attempts that led to it, `failed_tries` those that did not
    succeed; `seconds` is from the first one's start to the last one's end.
    """

    id: str
    sequence: int
    step: int
    source: str
    completed: list[str]
    next_nodes: list[str]
    failed_node: str
    actor: str
    created_at: datetime
    tries: int = 0
    failed_tries: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standpoint:
    """The checkpoint that is looked at, with what is open if it is the run's head."""

    record: CheckpointRecord
    is_head: bool
    questions: list[WaitRecord]
    results: list[AttemptRecord]


def find_standpoint(run: Run, checkpoint_id: str | None = None) -> Standpoint | None:
    """Where `run` stands, or a checkpoint of its thread; None if there is no such."""
    store = DjangoCheckpointer()
    head = str(run.head_id)
    namespace = split_namespace(run.namespace)
    wanted = checkpoint_id or head
    record = store.find_checkpoint(run.thread.key, wanted, namespace)
    if record is None:
        return None
    if record.id != head:
        return Standpoint(record=record, is_head=False, questions=[], results=[])
    asks = may_have_questions([record])
    waits = store.list_waits(run.thread.key, namespace) if asks else []
    row = run_record(run, run.thread.key, run.revision.digest)
    return Standpoint(
        record=record,
        is_head=True,
        questions=open_questions(record, waits),
        results=[
            item for item in store.list_results(row) if unfinished_failure(item) is None
        ],
    )


def find_parent(at: Standpoint) -> CheckpointRecord | None:
    """The checkpoint before `at`; None where nothing is before it."""
    if at.record.parent_id is None:
        return None
    return DjangoCheckpointer().find_checkpoint(
        at.record.thread_id, at.record.parent_id, at.record.namespace
    )


def find_run_graph(run: Run) -> CompiledGraph | None:
    """The revision that `run` is pinned to, if this process has it."""
    return find_graph(run.graph_id, digest=run.revision.digest)


def find_masking_codec(run: Run) -> StateCodec | None:
    """Who knows which fields of `run` are secret: its revision, else the newest here.

    None means that nobody here knows, so that nothing may be shown.
    """
    graph = find_run_graph(run) or find_graph(run.graph_id)
    return graph.blueprint.fold.codec if graph else None


def list_boundaries(run: Run, before: str | None = None) -> Window[BoundaryRow]:
    """The boundaries of `run`, those that were written by hand included.

    `before` is a sequence. Three queries: the boundaries, who acted at them, and the
    attempts that led to them.
    """
    rows = _boundaries_of(run)
    if before and before.isdecimal():
        rows = rows.filter(sequence__lt=int(before[:18]))
    rows = rows.order_by("-sequence").defer("changes", "appends")
    page, earlier = _newest(rows, lambda row: str(row.sequence))
    actors = _actors_at(run, [row.id for row in page])
    work = _work_before(run, [row.sequence for row in page])
    found = [
        replace(_boundary(row, actors.get(row.id, "")), **work.get(row.sequence, {}))
        for row in page
    ]
    return Window(rows=found, earlier=earlier)


def _boundaries_of(run: Run) -> QuerySet[Checkpoint]:
    """A hand-written boundary names no run, but its lineage is the run's alone."""
    rows = Checkpoint.objects.using(DjangoCheckpointer().using).filter(
        thread_id=run.thread_id, namespace=run.namespace
    )
    lineages = rows.filter(run=run).values("lineage")
    by_hand = Q(lineage__in=lineages) | Q(lineage=run.lineage)
    return rows.filter(Q(run=run) | (Q(run=None) & by_hand))


def _actors_at(run: Run, checkpoints: Sequence[UUID]) -> dict[Any, str]:
    rows = JournalEvent.objects.using(DjangoCheckpointer().using).filter(
        run=run, checkpoint_id__in=checkpoints
    )
    return dict(rows.exclude(actor="").values_list("checkpoint_id", "actor"))


def _work_before(run: Run, sequences: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The fields of a BoundaryRow that its attempts tell, by sequence."""
    rows = NodeAttempt.objects.using(DjangoCheckpointer().using).filter(run=run)
    grouped = rows.filter(sequence__in=sequences).order_by().values_list("sequence")
    counted = grouped.annotate(
        tries=Count("id"),
        failed=Count("id", Q(status__in=_UNSUCCESSFUL)),
        start=Min("started_at"),
        end=Max("ended_at"),
    )
    return {
        sequence: {
            "tries": tries,
            "failed_tries": failed,
            "seconds": (end - start).total_seconds() if end else None,
        }
        for sequence, tries, failed, start, end in counted
    }


def _boundary(row: Checkpoint, actor: str) -> BoundaryRow:
    record = decode(row.record)
    return BoundaryRow(
        id=str(row.id),
        sequence=row.sequence,
        step=row.step,
        source=row.source,
        completed=[node_of(item) for item in record.get("completed", ())],
        next_nodes=[item["node"] for item in record.get("pending", ())],
        failed_node=record.get("metadata", {}).get("failed_node") or "",
        actor=actor,
        created_at=row.created_at,
    )


def node_of(activation_id: str) -> str:
    """The node of an activation id, which is superstep, place and node."""
    return activation_id.split(":", 2)[-1]


def list_attempts(
    run: Run, before: str | None = None, *, node: str | None = None
) -> Window[AttemptRecord]:
    """The attempts of `run`, of one node if given; `before` is an attempt's id."""
    rows = NodeAttempt.objects.using(DjangoCheckpointer().using).filter(run=run)
    if node:
        rows = rows.filter(node_id=node)
    place = as_uuid(before) if before else None
    if place is not None:
        rows = rows.filter(id__lt=place)
    page, earlier = _newest(rows.order_by("-id"), lambda row: str(row.id))
    return Window(rows=[attempt_record(row) for row in page], earlier=earlier)


def list_journal(run: Run, before: str | None = None) -> Window[JournalRecord]:
    """The journal of `run`; `before` is a row's number."""
    rows = JournalEvent.objects.using(DjangoCheckpointer().using).filter(run=run)
    if before and before.isdecimal():
        rows = rows.filter(number__lt=int(before[:18]))
    page, earlier = _newest(rows.order_by("-number"), lambda row: str(row.number))
    return Window(rows=[journal_record(row) for row in page], earlier=earlier)


def _newest(
    rows: QuerySet[Any], place_of: Callable[[Any], str]
) -> tuple[list[Any], str | None]:
    """The first rows of a newest-first queryset, oldest first, and where more is."""
    found = list(rows[: WINDOW + 1])
    page = found[:WINDOW][::-1]
    return page, place_of(page[0]) if len(found) > WINDOW else None
