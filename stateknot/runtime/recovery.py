"""The sweep: finding runs that nobody was woken for, and waking them.

It never drives. Runs whose lease ran out, runs whose wake-up was lost, paused runs
whose answer came too late for their drive, and closing runs whose usage was not known
are woken; two sweeps at once wake each run once. Runs that are to be cancelled and
whose driver is gone are ended, and revisions that drained are retired.

Note [Room in the queue]
~~~~~~~~~~~~~~~~~~~~~~~~
Behind a long queue a wake-up is late, not lost. Sent again at every sweep it would
grow the queue faster than workers take from it, until they do nothing but take runs
that others have driven. So a sweep fills the queue up to its batch and no further; a
few more it always sends, for a queue that is full of something else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Window
from django.db.models.functions import Now, RowNumber

from stateknot.conf import get_settings
from stateknot.errors import AlreadyAnsweredError
from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus
from stateknot.kernel.writes import Cancellation
from stateknot.models import ActivationLease, Run, Wait
from stateknot.runtime.admission import answer_due
from stateknot.runtime.turns import free_slots
from stateknot.runtime.waking import count_queued, wake, wake_activation
from stateknot.runtime.worker import take_up_answers
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.queueing import begin_next, list_stranded
from stateknot.storage.revisions import retire_drained
from stateknot.storage.rows import split_namespace

if TYPE_CHECKING:
    from uuid import UUID

    from stateknot.models.querysets import RunQuerySet

logger = logging.getLogger("stateknot")

_ALWAYS = 50
"""The share of a batch, one in so many, that is woken behind the longest queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep did: the runs it woke, and those it could not look at."""

    run_ids: tuple[str, ...] = ()
    failed: tuple[str, ...] = field(default_factory=tuple)

    @property
    def woken(self) -> int:
        """How many runs were woken."""
        return len(self.run_ids)


def sweep() -> SweepReport:
    """Wake what was missed, at most `sweep_batch` runs. Safe to run twice at once."""
    settings = get_settings()
    _end_cancelled(settings.database, settings.sweep_batch)
    _begin_stranded(settings.database, settings.sweep_batch)
    _answer_expired(settings.database, settings.sweep_batch)
    answered, failed = _reopen_answered(settings.database, settings.sweep_batch)
    grace = timedelta(seconds=settings.wake_grace_seconds)
    runs = Run.objects.using(settings.database)
    room = find_room(settings.sweep_batch)
    woken = _wake_in_turn(runs.unwoken(grace), settings.database, room)
    _wake_activations(grace, settings.database, room)
    closing = runs.closing(grace).order_by("woken_at", "id")
    asked = _wake(closing, settings.database, room)
    retire_drained(settings.database)
    return SweepReport(run_ids=(*answered, *woken, *asked), failed=failed)


def find_room(batch: int) -> int:
    """How many runs a sweep may wake now. See Note [Room in the queue]."""
    return max(batch - count_queued(), batch // _ALWAYS, 1)


def _wake_in_turn(rows: RunQuerySet, using: str, batch: int) -> list[str]:
    """Wake the next of each graph's line before the second of any.

    Where a graph has a limit, no more than have a slot: a wake-up would be used up.
    """
    free, total = free_slots(using)
    place = Window(
        RowNumber(), partition_by="graph_id", order_by=["-priority", "created_at"]
    )
    in_turn = rows.alias(place=place).order_by("-priority", "place", "created_at")
    for graph_id, slots in free.items():
        in_turn = in_turn.exclude(graph_id=graph_id, place__gt=slots)
    most = batch if total is None else min(batch, total)
    ids = list(in_turn.values_list("id", flat=True)[:most])
    chosen = rows.filter(id__in=ids).order_by("-priority", "created_at")
    woken = set(_wake(chosen, using, batch))
    return [str(run_id) for run_id in ids if str(run_id) in woken]


def _wake(rows: RunQuerySet, using: str, batch: int) -> list[str]:
    """Claim the right to wake in the same transaction that sends the wake-up."""
    with transaction.atomic(using=using):
        locked = rows.select_for_update(skip_locked=True, of=("self",))
        ids: list[UUID] = list(locked.values_list("id", flat=True)[:batch])
        if not ids:
            return []
        for run_id in ids:
            wake(str(run_id))
    return [str(run_id) for run_id in ids]


def _begin_stranded(using: str, batch: int) -> None:
    """Begin queued runs whose thread was freed by somebody who did not say so."""
    for thread_id in list(list_stranded(using)[:batch]):
        try:
            with transaction.atomic(using=using):
                begin_next(thread_id, using)
        except Exception:
            logger.exception("sweep failed", extra={"thread_id": str(thread_id)})


def _end_cancelled(using: str, batch: int) -> None:
    """End runs that are to be cancelled and whose driver did not: it is gone, or its
    handler did not stop within the lease."""
    overdue = Run.objects.using(using).overdue_to_cancel()
    store = DjangoCheckpointer(using)
    oldest = overdue.order_by("cancel_requested_at").values_list("id", flat=True)
    for run_id in list(oldest[:batch]):
        try:
            with transaction.atomic(using=using):
                locked = overdue.select_for_update(skip_locked=True, of=("self",))
                if locked.filter(id=run_id):
                    store.cancel(Cancellation(run_id=str(run_id)))
        except Exception:
            logger.exception("sweep failed", extra={"run_id": str(run_id)})


def _wake_activations(grace: timedelta, using: str, batch: int) -> None:
    """Wake for activations of spread steps whose worker or wake-up was lost.

    One that was never woken waits for a sibling's end.
    """
    unwoken = (
        ActivationLease.objects.using(using)
        .filter(
            Q(lease_expires_at=None) | Q(lease_expires_at__lt=Now()),
            ended_at=None,
            woken_at__lt=Now() - grace,
        )
        .order_by("woken_at")
    )
    with transaction.atomic(using=using):
        locked = unwoken.select_for_update(skip_locked=True, of=("self",))
        for lease_id in list(locked.values_list("id", flat=True)[:batch]):
            wake_activation(str(lease_id))


def _answer_expired(using: str, batch: int) -> None:
    """Give questions their default answer once their deadline has passed.

    A child's question is its parent's as well, and is answered there.
    """
    expired = Wait.objects.using(using).filter(
        namespace="",
        status=WaitStatus.OPEN.value,
        kind=WaitKind.INTERRUPT.value,
        due_at__lte=Now(),
    )
    store = DjangoCheckpointer(using)
    threads = expired.order_by("due_at").values_list("thread__key", "namespace")
    for thread_id, namespace in dict.fromkeys(threads[:batch]):
        try:
            with transaction.atomic(using=using):
                answer_due(store, thread_id, split_namespace(namespace))
        except AlreadyAnsweredError:
            logger.info("answered meanwhile", extra={"thread_id": thread_id})
        except Exception:
            logger.exception("sweep failed", extra={"thread_id": thread_id})


def _reopen_answered(using: str, batch: int) -> tuple[list[str], tuple[str, ...]]:
    waits = Wait.objects.using(using)
    open_beside = waits.filter(
        run=OuterRef("run"),
        activation_id=OuterRef("activation_id"),
        status=WaitStatus.OPEN.value,
    )
    answered = waits.filter(
        ~Exists(open_beside), run=OuterRef("pk"), status=WaitStatus.ANSWERED.value
    )
    paused = Run.objects.using(using).filter(
        parent_run=None, status=RunStatus.INTERRUPTED.value
    )
    woken, failed = [], []
    store = DjangoCheckpointer(using)
    for run_id in paused.filter(Exists(answered)).values_list("id", flat=True)[:batch]:
        try:
            with transaction.atomic(using=using):
                # Locked, so that of two sweeps one finds it paused.
                locked = paused.select_for_update(skip_locked=True, of=("self",))
                if locked.filter(id=run_id) and take_up_answers(store, str(run_id)):
                    wake(str(run_id))
                    woken.append(str(run_id))
        except Exception:
            logger.exception("sweep failed", extra={"run_id": str(run_id)})
            failed.append(str(run_id))
    return woken, tuple(failed)
