"""Storing a new run: its thread, its revision, its row and its first checkpoint.

That a thread has one holding run is kept by the database; a start that loses the race
gets ThreadBusyError, and nothing of it is stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from stateknot.errors import ThreadBusyError
from stateknot.kernel.lifecycle import require_key, require_same_graph
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus, WaitStatus
from stateknot.kernel.writes import CheckpointDraft
from stateknot.models import Checkpoint, Run, Thread, Wait
from stateknot.models.runs import HOLDING
from stateknot.storage.boundary import checkpoint_row, load_tip
from stateknot.storage.journal import journal_row
from stateknot.storage.revisions import store_revision
from stateknot.storage.rows import STANDING_WAITS, join_namespace

if TYPE_CHECKING:
    from stateknot.kernel.records import Namespace
    from stateknot.kernel.writes import Admission, ThreadFork
    from stateknot.storage.boundary import Tip


def insert_run(admission: Admission, using: str) -> tuple[Run, Tip]:
    """Store an admitted run and its input record; gives the row and the tip behind it.

    The input record begins a lineage and names the previous head as its parent.
    Transaction: the caller's. Raises ThreadBusyError, RunError for a bad thread id.
    """
    thread, is_new = find_thread(admission, using)
    # Nobody else sees a thread that this transaction makes.
    previous = None if is_new else find_previous(thread, admission, using)
    sequence = 0 if is_new else next_sequence(thread, admission.namespace, using)
    parent_id = str(previous.head_id) if previous else None
    draft = input_draft(admission, sequence=sequence, parent_id=parent_id)
    events = admission.events + superseded(previous, using)
    return _insert(admission, draft, thread, RunStatus.PENDING, events, using)


def input_draft(
    admission: Admission, *, sequence: int, parent_id: str | None
) -> CheckpointDraft:
    """The input record of a run: it begins a lineage, behind `parent_id`."""
    return CheckpointDraft(
        id=admission.checkpoint_id,
        sequence=sequence,
        lineage=sequence,
        parent_id=parent_id,
        step=0,
        source=CheckpointSource.INPUT,
        delta=admission.delta,
        pending=admission.pending,
        namespace=admission.namespace,
    )


def insert_fork(fork: ThreadFork, using: str) -> Run:
    """Store a run that stands at a copied checkpoint until somebody resumes it."""
    thread, _ = find_thread(fork.admission, using)
    idle = RunStatus.INTERRUPTED if fork.checkpoint.pending else RunStatus.COMPLETED
    events = fork.admission.events
    run, _ = _insert(fork.admission, fork.checkpoint, thread, idle, events, using)
    return run


def find_thread(admission: Admission, using: str) -> tuple[Thread, bool]:
    """The thread of a run, and whether this transaction made it."""
    key = admission.thread_id
    require_key(key, "thread id")
    thread, is_new = Thread.objects.using(using).get_or_create(
        key=key, defaults={"id": uuid7(), "graph_id": admission.graph_id}
    )
    if not admission.namespace:
        require_same_graph(key, thread.graph_id, admission.graph_id)
    return thread, is_new


def find_previous(thread: Thread, admission: Admission, using: str) -> Run | None:
    """The newest run of the thread, locked, or None.

    Its last boundary, or another start, may be about to commit: the new run stands
    behind what that leaves. Whoever waits here looks again at what is newest.
    """
    runs = Run.objects.using(using).filter(
        thread=thread, namespace=join_namespace(admission.namespace)
    )
    if not admission.namespace:
        runs = runs.filter(current_of=thread)
    newest = runs.order_by("-created_at", "-id")
    while True:
        locked = newest.select_for_update(of=("self",)).first()
        if locked is None or locked == newest.first():
            return locked


def next_sequence(thread: Thread, namespace: Namespace, using: str) -> int:
    """The place behind the newest checkpoint of a thread."""
    rows = Checkpoint.objects.using(using).filter(
        thread=thread, namespace=join_namespace(namespace)
    )
    last = rows.order_by("-sequence").values_list("sequence", flat=True).first()
    return 0 if last is None else last + 1


def superseded(previous: Run | None, using: str) -> tuple[Event, ...]:
    """Close what an ended run still asked, and say so: it is not dropped silently."""
    if previous is None or previous.status in HOLDING:
        return ()
    standing = Wait.objects.using(using).filter(run=previous, status__in=STANDING_WAITS)
    asked = standing.filter(status=WaitStatus.OPEN.value)
    ids = [str(pk) for pk in asked.values_list("id", flat=True)]
    standing.update(status=WaitStatus.CLOSED.value)
    return (Event(kind="waits.superseded", data={"waits": ids}),) if ids else ()


def _insert(
    admission: Admission,
    draft: CheckpointDraft,
    thread: Thread,
    status: RunStatus,
    events: tuple[Event, ...],
    using: str,
) -> tuple[Run, Tip]:
    run = new_row(admission, draft, thread, status, using)
    row, tip = checkpoint_row(draft, load_tip(run, draft.parent_id, using), run.id)
    entry = None
    if events:
        entry = journal_row(
            run.id, tip.journal, events, checkpoint_id=draft.id, actor=admission.actor
        )
        tip = replace(tip, journal=tip.journal.after(len(events), bytes(entry.digest)))
    run.next_journal, run.event_count = tip.journal.number, tip.journal.events
    _save_holder(run, using)
    row.save(using=using, force_insert=True)
    if entry is not None:
        entry.save(using=using, force_insert=True)
    if not admission.namespace:
        Thread.objects.using(using).filter(id=thread.id).update(current_run=run)
    return run, tip


def new_row(
    admission: Admission,
    draft: CheckpointDraft,
    thread: Thread,
    status: RunStatus,
    using: str,
) -> Run:
    """The row of an admitted run, which is not stored yet; its revision is."""
    return Run(
        id=UUID(admission.run_id),
        thread=thread,
        revision=store_revision(
            digest=admission.digest,
            graph_id=admission.graph_id,
            version=admission.graph_version,
            definition=admission.definition,
            source_map=admission.source_map,
            using=using,
        ),
        graph_id=admission.graph_id,
        namespace=join_namespace(admission.namespace),
        status=str(status),
        head_id=UUID(draft.id),
        sequence=draft.sequence,
        lineage=draft.lineage,
        step_limit=admission.step_limit,
        priority=admission.priority,
        metadata=admission.metadata,
        actor=admission.actor,
        root_run_id=UUID(admission.root_run_id or admission.run_id),
        parent_run_id=admission.parent_run_id,
    )


def _save_holder(run: Run, using: str) -> None:
    """Insert a run, unless another holds it: See Note [One run holds a thread]."""
    try:
        with transaction.atomic(using=using):
            run.save(using=using, force_insert=True)
    except IntegrityError:
        busy = (
            Run.objects.using(using)
            .filter(
                thread_id=run.thread_id,
                namespace=run.namespace,
                status__in=HOLDING,
                queued_input=None,
            )
            .first()
        )
        if busy is None:
            raise
        raise ThreadBusyError(
            thread_id=run.thread.key, run_id=str(busy.id), status=busy.status
        ) from None
