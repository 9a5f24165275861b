"""Committing a boundary: the one write of every superstep.

`commit_boundary` writes a superstep with at most four statements: the run (with the
fence in it), the checkpoint, the attempts, the journal; on PostgreSQL with one. What
the next boundary needs to know of this one (`Tip`) is remembered, so that nothing is
read in between. See Note [The fence is in the statement].

Note [The fence is in the statement]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A worker that lost its lease may not know it yet. The UPDATE of the run names the epoch,
the holder and the journal number it expects; when it meets no row, either another
holder took the run (LeaseError, and the transaction is undone) or somebody journalled
an operator's act meanwhile, in which case the tip is read again and the boundary
repeated.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import F, Max
from django.db.models.functions import Now

from stateknot.errors import LeaseError
from stateknot.kernel.cancelling import as_cancelled, cancelled
from stateknot.kernel.profile import decode, encode
from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus
from stateknot.models import ActivationLease, Checkpoint, NodeAttempt, Run, Wait
from stateknot.storage.boundary_sql import (
    BoundaryRows,
    insert_rows,
    is_one_statement,
    write_rows,
)
from stateknot.storage.cancelling import close_family
from stateknot.storage.deltas import Places, chain_digest, encode_row, places_of
from stateknot.storage.holding import engine_transaction, held_run
from stateknot.storage.journal import JournalHead, journal_columns, load_journal_head
from stateknot.storage.resting import resting_changes
from stateknot.storage.rows import attempt_columns, join_namespace, wait_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import Fence
    from stateknot.kernel.writes import Boundary, CheckpointDraft

_MOST_TIPS = 1_024
_as_uuid = lru_cache(maxsize=_MOST_TIPS)(UUID)
"""A boundary names its run and its parent as the one before it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """What a run's next boundary builds on: head, places of fields, chains."""

    head_id: str
    thread_id: UUID
    places: Places
    digest: bytes
    journal: JournalHead


class TipCache:
    """The tips of the runs that this process drives, newest kept."""

    def __init__(self) -> None:
        self._tips: OrderedDict[str, Tip] = OrderedDict()

    def find(self, run_id: str, head_id: str | None) -> Tip | None:
        """The remembered tip, unless it is of another head."""
        tip = self._tips.get(run_id)
        return tip if tip is not None and tip.head_id == head_id else None

    def keep(self, run_id: str, tip: Tip) -> None:
        """Remember a tip."""
        self._tips[run_id] = tip
        self._tips.move_to_end(run_id)
        while len(self._tips) > _MOST_TIPS:
            self._tips.popitem(last=False)

    def forget(self, run_id: str) -> None:
        """Read it again next time."""
        self._tips.pop(run_id, None)


def load_tip(run: Run, parent_id: str | None, using: str) -> Tip:
    """Read the tip of a run behind `parent_id`."""
    parent = None
    if parent_id is not None:
        rows = Checkpoint.objects.using(using).filter(id=parent_id)
        parent = rows.values_list("record", "digest").first()
    return Tip(
        head_id=parent_id or "",
        thread_id=run.thread_id,
        places=places_of(decode(parent[0])) if parent else Places(),
        digest=bytes(parent[1]) if parent else b"",
        journal=load_journal_head(run, using),
    )


def checkpoint_row(
    draft: CheckpointDraft, tip: Tip, run_id: UUID | None
) -> tuple[Checkpoint, Tip]:
    """The row of a draft on top of `tip`, and the tip behind it."""
    columns, behind = checkpoint_columns(draft, tip, run_id)
    return Checkpoint(**columns), behind


def checkpoint_columns(
    draft: CheckpointDraft, tip: Tip, run_id: UUID | None
) -> tuple[dict[str, Any], Tip]:
    """The columns of a draft's row on top of `tip`, and the tip behind it."""
    columns, places = _columns_and_places(draft, tip, run_id)
    return columns, _behind(tip, draft, places, columns["digest"], tip.journal)


def _behind(
    tip: Tip,
    draft: CheckpointDraft,
    places: Places,
    digest: bytes,
    journal: JournalHead,
) -> Tip:
    return Tip(
        head_id=draft.id,
        thread_id=tip.thread_id,
        places=places,
        digest=digest,
        journal=journal,
    )


def _columns_and_places(
    draft: CheckpointDraft, tip: Tip, run_id: UUID | None
) -> tuple[dict[str, Any], Places]:
    before = Places() if draft.is_base else tip.places
    places = Places() if draft.is_base else before.moved(draft.delta, draft.sequence)
    parts = encode_row(draft, places)
    digest = chain_digest(tip.digest, parts)
    columns = {
        "id": _as_uuid(draft.id),
        "thread_id": tip.thread_id,
        "run_id": run_id,
        "namespace": join_namespace(draft.namespace),
        "sequence": draft.sequence,
        "lineage": draft.lineage,
        "parent_id": _as_uuid(draft.parent_id) if draft.parent_id else None,
        "step": draft.step,
        "source": str(draft.source),
        "changes": parts.changes,
        "appends": parts.appends,
        "record": parts.record,
        "digest": digest,
    }
    return columns, places


def commit_boundary(
    fence: Fence,
    boundary: Boundary,
    *,
    tips: TipCache,
    using: str,
    freed: Callable[[UUID, str], None],
) -> bool:
    """Store a boundary under its fence and move the head, in one transaction.

    Whether the run is to be cancelled, see the port. `freed` is called in it with the
    thread of a run that ended and is awaited. Locks: the run's row, by updating it.
    Raises LeaseError when another epoch holds the run.
    """
    tip = tips.find(fence.run_id, boundary.checkpoint.parent_id)
    tips.forget(fence.run_id)
    if tip is not None and is_hot(boundary) and is_one_statement(using):
        written = _drafted(fence, boundary, tip)
        if write_rows(written.rows, using):
            tips.keep(fence.run_id, written.tip)
            return False
        tip = None
    with engine_transaction(using):
        behind, is_cancelled = _commit_here(fence, boundary, tip, using, freed)
    if not is_cancelled:
        tips.keep(fence.run_id, behind)
    return is_cancelled


def is_hot(boundary: Boundary) -> bool:
    """Whether a boundary only adds rows and moves the head, as most do."""
    touches_more = (
        boundary.folded_attempts
        or boundary.waits
        or boundary.closed_waits
        or boundary.delivered_waits
        or boundary.ends_spread
    )
    return boundary.status is RunStatus.RUNNING and not touches_more


def _commit_here(
    fence: Fence,
    boundary: Boundary,
    tip: Tip | None,
    using: str,
    freed: Callable[[UUID, str], None],
) -> tuple[Tip, bool]:
    """Commit inside the caller's transaction; gives the tip behind the boundary.

    A tip that still fits says that nobody asked to cancel: that would have moved the
    journal. Otherwise, or if another run awaits the end, the row is read, and tells.
    """
    written = _drafted(fence, boundary, tip) if tip is not None else None
    if written is not None and _write(fence, boundary, written.rows, using, alone=True):
        return written.tip, False
    run = held_run(fence, using)
    is_cancelled = run.cancel_requested_at is not None
    if is_cancelled:
        boundary = _as_cancelled(boundary, run, using)
    tip = load_tip(run, boundary.checkpoint.parent_id, using)
    written = _drafted(fence, boundary, tip)
    if not _write(fence, boundary, written.rows, using):
        raise LeaseError(fence.run_id, fence.epoch)
    if run.is_awaited and boundary.status.is_terminal:
        freed(run.thread_id, using)
    return written.tip, is_cancelled


def _as_cancelled(boundary: Boundary, run: Run, using: str) -> Boundary:
    """The boundary of a run that is to be cancelled, with its end told if it rests."""
    stored = as_cancelled(boundary)
    if stored is boundary:
        return boundary
    told = cancelled(str(run.id), run.cancel_reason, close_family(run, using))
    return replace(stored, events=(*stored.events, told))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drafted:
    """The rows of a boundary on top of a tip, and the tip behind them."""

    rows: BoundaryRows
    tip: Tip


def _drafted(fence: Fence, boundary: Boundary, tip: Tip) -> _Drafted:
    run_id, draft = _as_uuid(fence.run_id), boundary.checkpoint
    checkpoint, places = _columns_and_places(draft, tip, run_id)
    entry, journal, count = None, tip.journal, len(boundary.events)
    if count:
        entry = journal_columns(
            run_id, journal, boundary.events, checkpoint_id=checkpoint["id"]
        )
        journal = journal.after(count, entry["digest"])
    next_tip = _behind(tip, draft, places, checkpoint["digest"], journal)
    rows = BoundaryRows(
        moved={
            "head_id": checkpoint["id"],
            "sequence": draft.sequence,
            "lineage": draft.lineage,
            "steps": boundary.steps,
            "next_journal": next_tip.journal.number,
            "event_count": next_tip.journal.events,
        },
        active_seconds=boundary.active_seconds,
        held={
            "id": run_id,
            "epoch": fence.epoch,
            "holder": fence.holder,
            "next_journal": tip.journal.number,
        },
        checkpoint=checkpoint,
        attempts=[attempt_columns(run_id, item) for item in boundary.attempts],
        entry=entry,
    )
    return _Drafted(rows=rows, tip=next_tip)


def _write(
    fence: Fence,
    boundary: Boundary,
    rows: BoundaryRows,
    using: str,
    *,
    alone: bool = False,
) -> bool:
    """Write the rows, and what a boundary that is not hot changes beyond them.

    With `alone` the end of a run that is awaited is not written.
    """
    if boundary.status is RunStatus.RUNNING:
        if not write_rows(rows, using):
            return False
    elif _rest(rows, boundary, using, alone=alone):
        insert_rows(rows, using)
    else:
        return False
    _close_and_ask(fence, boundary, using)
    return True


def _rest(rows: BoundaryRows, boundary: Boundary, using: str, *, alone: bool) -> bool:
    """Move the run to where it rests, under its fence; False when that met no run."""
    changes = {
        **rows.moved,
        "active_seconds": F("active_seconds") + rows.active_seconds,
        **resting_changes(boundary.status, boundary.error),
    }
    if boundary.output is not None:
        changes["output"] = encode(boundary.output)
    held = Run.objects.using(using).filter(**rows.held)
    if alone and boundary.status.is_terminal:
        held = held.filter(is_awaited=False)
    return bool(held.update(**changes))


def _close_and_ask(fence: Fence, boundary: Boundary, using: str) -> None:
    """The cold part of a boundary: results folded, questions closed and asked."""
    if boundary.ends_spread:
        forget_leases(fence.run_id, using)
    if boundary.folded_attempts:
        NodeAttempt.objects.using(using).filter(id__in=boundary.folded_attempts).update(
            is_folded=True
        )
    if boundary.delivered_waits:
        Wait.objects.using(using).filter(id__in=boundary.delivered_waits).update(
            status=WaitStatus.DELIVERED.value
        )
    if boundary.closed_waits:
        Wait.objects.using(using).filter(id__in=boundary.closed_waits).update(
            status=WaitStatus.CLOSED.value
        )
    if boundary.waits:
        run = Run.objects.using(using).get(id=fence.run_id)
        add_waits(run, boundary.waits, using)
    if boundary.status is RunStatus.WAITING:
        timers = open_timers(fence.run_id, using)
        due = timers.aggregate(last=Max("due_at"))["last"]
        Run.objects.using(using).filter(id=fence.run_id).update(wake_at=due)


def forget_leases(run_id: str | UUID, using: str) -> None:
    """Drop what became of a step that was spread: it is folded, or runs again."""
    ActivationLease.objects.using(using).filter(run_id=run_id).delete()


def open_timers(run_id: str, using: str) -> Any:
    """The timers that a run still waits for."""
    return Wait.objects.using(using).filter(
        run_id=run_id, kind=WaitKind.TIMER.value, status=WaitStatus.OPEN.value
    )


def add_waits(run: Run, waits: Any, using: str) -> None:
    """Store new waits of `run`; due times are the database's clock plus a duration."""
    rows = []
    for wait in waits:
        row = wait_row(run, wait)
        if wait.due_in_seconds is not None:
            row.due_at = Now() + timedelta(seconds=wait.due_in_seconds)
        rows.append(row)
    Wait.objects.using(using).bulk_create(rows)
