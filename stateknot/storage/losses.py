"""Taking over a run whose worker was lost: what is recorded of the loss.

Works on a run's row that the caller has locked. Read `stateknot/kernel/lost.py` for
what the records are.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db.models import Max
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from stateknot.conf import get_settings
from stateknot.kernel.lost import loss_failure, lost_attempts
from stateknot.kernel.once import lost_start
from stateknot.kernel.profile import decode, encode
from stateknot.kernel.records import Activation, Event
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import AttemptStatus, RunStatus, WaitStatus
from stateknot.models import ActivationLease, Checkpoint, NodeAttempt, Run, Wait
from stateknot.storage.journal import append_journal
from stateknot.storage.resting import resting_changes
from stateknot.storage.rows import attempt_record, attempt_row

_TRIED = [AttemptStatus.FAILED.value, AttemptStatus.LOST.value]

if TYPE_CHECKING:
    from datetime import datetime

    from stateknot.kernel.records import AttemptRecord


def close_attempt(attempt: AttemptRecord, using: str) -> None:
    """End the row of an attempt whose start was stored before."""
    rows = NodeAttempt.objects.using(using).filter(id=attempt.id)
    rows.filter(status=AttemptStatus.RUNNING.value).update(
        status=str(attempt.status),
        ended_at=attempt.ended_at,
        error=attempt.error,
        result=None if attempt.result is None else encode(attempt.result),
        usage=attempt.usage,
    )


def lose_begun(attempts: Any) -> None:
    """End those of `attempts` (a queryset) that nobody will end any more."""
    attempts.filter(status=AttemptStatus.RUNNING.value).update(
        status=AttemptStatus.LOST.value, ended_at=Now()
    )


def note_loss(run: Run, using: str) -> bool:
    """Record the loss of the worker that holds `run`; whether the run is given up.

    Every activation of the head that has no result gets a `lost` attempt. After
    `worker_lost_limit` losses in a row at one head the run fails, since whatever takes
    it up is killed by it.
    """
    head = Checkpoint.objects.using(using).get(id=run.head_id)
    given_up = run.lease_expires_at or head.created_at
    begun = _close_begun(run, given_up, using)
    unfinished = _unfinished(run, head, using)
    _add_attempts(run, head, unfinished, given_up, using)
    is_same = run.lost_head_id == run.head_id
    run.lost_claims = run.lost_claims + 1 if is_same else 1
    run.lost_head_id = run.head_id
    facts = {"holder": run.holder, "epoch": run.epoch, "lost": begun + len(unfinished)}
    events = [Event(kind="lease.expired", data=facts)]
    changes: dict[str, Any] = {}
    if run.lost_claims >= get_settings().worker_lost_limit:
        failure = loss_failure(unfinished, run.lost_claims)
        told = {"run_id": str(run.id), "error": failure.message, "code": failure.code}
        events.append(Event(kind="run.failed", node=failure.node_id, data=told))
        changes = resting_changes(RunStatus.FAILED, failure.to_json())
    append_journal(run, events, using=using)
    Run.objects.using(using).filter(id=run.id).update(
        next_journal=run.next_journal,
        event_count=run.event_count,
        lost_claims=run.lost_claims,
        lost_head_id=run.lost_head_id,
        **changes,
    )
    return bool(changes)


def note_activation_loss(
    run: Run, activation_id: str, given_up: datetime, using: str
) -> None:
    """Record the loss of the worker that ran one activation of a spread step.

    Its siblings run elsewhere. Nothing is recorded where its result is stored already.
    """
    head = Checkpoint.objects.using(using).get(id=run.head_id)
    if _close_begun(run, given_up, using, activation_id=activation_id):
        return
    lost = tuple(a for a in _unfinished(run, head, using) if a.id == activation_id)
    _add_attempts(run, head, lost, given_up, using)


def _close_begun(run: Run, given_up: datetime, using: str, **of: str) -> int:
    """End the attempts that were begun for good and went down; how many."""
    rows = NodeAttempt.objects.using(using).filter(
        run=run, lineage=run.lineage, status=AttemptStatus.RUNNING.value, **of
    )
    begun = [attempt_record(row) for row in rows]
    for attempt in begun:
        close_attempt(lost_start(attempt, given_up), using)
    return len(begun)


def _unfinished(run: Run, head: Checkpoint, using: str) -> tuple[Activation, ...]:
    """What is due at the head, without what is finished or waits for an answer."""
    attempts = NodeAttempt.objects.using(using).filter(
        run=run, lineage=run.lineage, result__isnull=False, is_folded=False
    )
    waits = Wait.objects.using(using).filter(run=run, status=WaitStatus.OPEN.value)
    done = {*attempts.values_list("activation_id", flat=True)}
    done.update(waits.values_list("activation_id", flat=True))
    leases = ActivationLease.objects.using(using).filter(
        run=run, head_id=run.head_id, ended_at__isnull=False
    )
    done.update(leases.values_list("activation_id", flat=True))
    listed = decode(head.record).get("pending", ())
    pending = tuple(Activation.from_json(item) for item in listed)
    return tuple(a for a in with_ids(pending, head.step + 1) if a.id not in done)


def _add_attempts(
    run: Run,
    head: Checkpoint,
    unfinished: tuple[Activation, ...],
    given_up: datetime,
    using: str,
) -> None:
    sequence = _last_sequence(run, using) + 1
    earlier = NodeAttempt.objects.using(using).filter(
        run=run, lineage=run.lineage, sequence=sequence, status__in=_TRIED
    )
    attempts = lost_attempts(
        unfinished,
        tries=Counter(earlier.values_list("activation_id", flat=True)),
        lineage=run.lineage,
        sequence=sequence,
        started_at=head.created_at,
        ended_at=given_up,
        new_id=lambda: str(uuid7()),
    )
    rows = [attempt_row(str(run.id), attempt) for attempt in attempts]
    NodeAttempt.objects.using(using).bulk_create(rows)


def _last_sequence(run: Run, using: str) -> int:
    rows = Checkpoint.objects.using(using).filter(
        thread_id=run.thread_id, namespace=run.namespace
    )
    last: int = rows.aggregate(last=Max("sequence"))["last"]
    return last
