"""Runs that begin once their thread is free, one after the other.

A queued run is pending, has no checkpoint yet and does not hold its thread; what it
begins with stands in its row. It begins in the transaction in which the run before it
ends. See Note [The next run].

Note [The next run]
~~~~~~~~~~~~~~~~~~~
Whoever queues a run has locked the row of the thread's current run, and whoever ends
that run locks it too: so either the end sees what is queued, or the queued run finds
the thread free and begins at once. The run that is waited for says so in its row
(`is_awaited`), so that the end of any other costs nothing. Nothing between the two can
be lost in a crash. Only the wake-up can (it is sent by whoever listens to `run_begun`),
and the sweep finds a run that nobody was woken for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.dispatch import Signal

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.profile import decode, encode
from stateknot.kernel.queueing import begun, queued
from stateknot.kernel.records import Activation
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus
from stateknot.kernel.writes import CheckpointDraft
from stateknot.models import Run, Thread
from stateknot.models.runs import HOLDING
from stateknot.storage.admitting import (
    find_previous,
    find_thread,
    input_draft,
    insert_run,
    new_row,
    next_sequence,
    superseded,
)
from stateknot.storage.boundary import checkpoint_row, load_tip
from stateknot.storage.journal import append_journal

if TYPE_CHECKING:
    from stateknot.kernel.writes import Admission

run_begun = Signal()
"""Sent with `run_id`, in the transaction in which a queued run begins."""


def enqueue(admission: Admission, using: str) -> Run:
    """Store a run that begins once its thread is free, at once if it is.

    Locks: the row of the thread's current run.
    """
    thread, _ = find_thread(admission, using)
    current = find_previous(thread, admission, using)
    is_held = current is not None and current.status in HOLDING
    if not is_held and not _waiting(using).filter(thread=thread).exists():
        run, _ = insert_run(admission, using)
        return run
    draft = input_draft(admission, sequence=0, parent_id=None)
    run = new_row(admission, draft, thread, RunStatus.PENDING, using)
    run.queued_input = encode(
        {
            "changes": dict(admission.delta.changes),
            "pending": [activation.to_json() for activation in admission.pending],
        }
    )
    run.save(using=using, force_insert=True)
    events = (*admission.events, queued(str(current.id) if current else ""))
    append_journal(run, events, using=using, actor=admission.actor)
    run.save(using=using, update_fields=["next_journal", "event_count"])
    if current is not None:
        Run.objects.using(using).filter(id=current.id).update(is_awaited=True)
    if not is_held:
        begin_next(thread.id, using)
    return run


def begin_next(thread_id: UUID, using: str) -> None:
    """Begin what waits longest for a thread, if something does and it is free.

    Transaction: the caller's, which freed it. Locks: the row of the run that begins.
    """
    waiting = _waiting(using).filter(thread_id=thread_id)
    run = waiting.order_by("created_at", "id").select_for_update(of=("self",)).first()
    if run is None or _holders(using).filter(thread_id=thread_id).exists():
        return
    try:
        with transaction.atomic(using=using):
            _begin(run, using)
    except IntegrityError:
        # A start that did not wait took the thread; this run begins behind it.
        return
    run_begun.send(Run, run_id=str(run.id))


def list_stranded(using: str) -> Any:
    """The threads that are free although a run waits for them."""
    holder = _holders(using).filter(thread_id=OuterRef("thread_id"))
    stranded = _waiting(using).filter(~Exists(holder))
    return stranded.order_by("thread_id").values_list("thread_id", flat=True).distinct()


def _begin(run: Run, using: str) -> None:
    """Write the input record of a queued run, behind what its thread has now."""
    previous = Run.objects.using(using).filter(current_of=run.thread_id).first()
    given = decode(run.queued_input or b"")
    sequence = next_sequence(run.thread, (), using)
    draft = CheckpointDraft(
        id=str(run.head_id),
        sequence=sequence,
        lineage=sequence,
        parent_id=str(previous.head_id) if previous else None,
        step=0,
        source=CheckpointSource.INPUT,
        delta=StateDelta(changes=given["changes"]),
        pending=tuple(Activation.from_json(item) for item in given["pending"]),
    )
    run.queued_input, run.sequence, run.lineage = None, draft.sequence, draft.sequence
    run.is_awaited = True  # others may wait; if none does, its end looks for nothing
    row, _ = checkpoint_row(draft, load_tip(run, draft.parent_id, using), run.id)
    row.save(using=using, force_insert=True)
    events = (begun(), *superseded(previous, using))
    append_journal(run, events, using=using, checkpoint_id=draft.id)
    run.save(using=using, update_fields=_BEGUN)
    Thread.objects.using(using).filter(id=run.thread_id).update(current_run=run)


_BEGUN = [
    *("queued_input", "is_awaited", "sequence", "lineage"),
    *("next_journal", "event_count"),
]


def _waiting(using: str) -> Any:
    return Run.objects.using(using).filter(
        status=RunStatus.PENDING.value, queued_input__isnull=False
    )


def _holders(using: str) -> Any:
    return Run.objects.using(using).filter(
        namespace="", status__in=HOLDING, queued_input=None
    )
