"""Committing a boundary: the one write of every superstep.

`commit_boundary` is at most four statements for a sequential superstep: the run (with
the fence in it), the checkpoint, the attempts, the journal. What the next boundary
needs to know of this one (`Tip`) is remembered, so that nothing is read in between. See
Note [The fence is in the statement].

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
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import F, Max
from django.db.models.functions import Now

from stateknot.errors import LeaseError
from stateknot.kernel.profile import decode, encode
from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus
from stateknot.models import Checkpoint, NodeAttempt, Run, Wait
from stateknot.storage.deltas import Places, chain_digest, encode_row, places_of
from stateknot.storage.journal import JournalHead, journal_row, load_journal_head
from stateknot.storage.rows import attempt_row, join_namespace, wait_row

if TYPE_CHECKING:
    from stateknot.kernel.records import Boundary, CheckpointDraft, Fence

_MOST_TIPS = 1_024


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
    before = Places() if draft.is_base else tip.places
    places = Places() if draft.is_base else before.moved(draft.delta, draft.sequence)
    parts = encode_row(draft, places)
    digest = chain_digest(tip.digest, parts)
    row = Checkpoint(
        id=UUID(draft.id),
        thread_id=tip.thread_id,
        run_id=run_id,
        namespace=join_namespace(draft.namespace),
        sequence=draft.sequence,
        lineage=draft.lineage,
        parent_id=UUID(draft.parent_id) if draft.parent_id else None,
        step=draft.step,
        source=str(draft.source),
        changes=parts.changes,
        appends=parts.appends,
        record=parts.record,
        digest=digest,
    )
    return row, replace(tip, head_id=draft.id, places=places, digest=digest)


def commit_boundary(
    fence: Fence, boundary: Boundary, *, tips: TipCache, using: str
) -> None:
    """Store a boundary under its fence and move the head.

    Transaction: the caller's. Locks: the run's row, by updating it. Raises LeaseError
    when another epoch holds the run.
    """
    parent_id = boundary.checkpoint.parent_id
    tip = tips.find(fence.run_id, parent_id)
    if tip is None or not _update_run(fence, boundary, tip, using):
        run = _held_run(fence, using)
        tip = load_tip(run, parent_id, using)
        if not _update_run(fence, boundary, tip, using):
            raise LeaseError(fence.run_id, fence.epoch)
    tips.forget(fence.run_id)
    run_id = UUID(fence.run_id)
    row, next_tip = checkpoint_row(boundary.checkpoint, tip, run_id)
    row.save(using=using, force_insert=True)
    if boundary.attempts:
        rows = [attempt_row(fence.run_id, attempt) for attempt in boundary.attempts]
        NodeAttempt.objects.using(using).bulk_create(rows)
    if boundary.events:
        entry = journal_row(
            run_id, tip.journal, boundary.events, checkpoint_id=boundary.checkpoint.id
        )
        entry.save(using=using, force_insert=True)
        journal = tip.journal.after(len(boundary.events), bytes(entry.digest))
        next_tip = replace(next_tip, journal=journal)
    _close_and_ask(fence, boundary, using)
    tips.keep(fence.run_id, next_tip)


def _held_run(fence: Fence, using: str) -> Run:
    run: Run | None = (
        Run.objects.using(using)
        .select_for_update()
        .filter(id=fence.run_id, epoch=fence.epoch, holder=fence.holder)
        .first()
    )
    if run is None:
        raise LeaseError(fence.run_id, fence.epoch)
    return run


def _update_run(fence: Fence, boundary: Boundary, tip: Tip, using: str) -> bool:
    draft = boundary.checkpoint
    events = len(boundary.events)
    changes: dict[str, Any] = {
        "head_id": draft.id,
        "sequence": draft.sequence,
        "lineage": draft.lineage,
        "steps": boundary.steps,
        "next_journal": tip.journal.number + (events > 0),
        "event_count": tip.journal.events + events,
        "active_seconds": F("active_seconds") + boundary.active_seconds,
    }
    if boundary.status is not RunStatus.RUNNING:
        changes |= resting_changes(boundary.status, boundary.error)
        if boundary.output is not None:
            changes["output"] = encode(boundary.output)
    updated = (
        Run.objects.using(using)
        .filter(
            id=fence.run_id,
            epoch=fence.epoch,
            holder=fence.holder,
            next_journal=tip.journal.number,
        )
        .update(**changes)
    )
    return bool(updated)


def resting_changes(status: RunStatus, error: Any) -> dict[str, Any]:
    """The columns of a run that stops being driven, for now or for good."""
    return {
        "status": str(status),
        "holder": "",
        "lease_expires_at": None,
        "wake_at": None,
        "error": dict(error) if error else None,
        "error_code": error.get("code", "")[:128] if error else "",
        "failed_node": error.get("node", "")[:128] if error else "",
        "ended_at": Now() if status.is_terminal else None,
    }


def _close_and_ask(fence: Fence, boundary: Boundary, using: str) -> None:
    """The cold part of a boundary: results folded, questions closed and asked."""
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
