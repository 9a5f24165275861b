"""Telling workers to look at a run: the one module that speaks to django-q2.

A wake-up carries the run's id and nothing else; the row decides what is done. With the
ORM broker on the engine's database it is a row of the caller's transaction, so it
appears and vanishes with what caused it; with another broker it is sent on commit.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now

from stateknot.conf import get_settings
from stateknot.models import ActivationLease, Run

logger = logging.getLogger("stateknot")

TASK = "stateknot.tasks.drive"
ACTIVATION_TASK = "stateknot.tasks.activate"


def wake(run_id: str) -> None:
    """Ask the workers to look at `run_id` once this transaction commits.

    Transaction: the caller's. The row notes when, so that the sweep leaves the run
    alone for a while. Idempotent: a doubled wake-up finds nothing to do, a lost one is
    made up for by the sweep.
    """
    using = get_settings().database
    Run.objects.using(using).filter(id=run_id).update(woken_at=Now())
    _send_with(using, TASK, run_id)


def wake_activation(lease_id: str) -> None:
    """Ask a worker to run an activation of a spread step; otherwise like `wake`."""
    using = get_settings().database
    leases = ActivationLease.objects.using(using)
    leases.filter(id=lease_id).update(woken_at=Now())
    _send_with(using, ACTIVATION_TASK, lease_id)


def _send_with(using: str, task: str, row_id: str) -> None:
    """Send with the transaction, or once it has committed."""
    if _is_transactional(using):
        _send(task, row_id)
    else:
        transaction.on_commit(lambda: _send_late(task, row_id), using=using)


def wake_begun(run_id: str, **_sent: object) -> None:
    """Wake a worker for a queued run that begins; a receiver of `run_begun`."""
    wake(run_id)


def count_queued() -> int:
    """How many messages wait in the queue; 0 where the broker cannot be asked."""
    from django_q.brokers import get_broker

    try:
        return int(get_broker().queue_size())
    except Exception:
        logger.exception("the queue's length is not known")
        return 0


def _is_transactional(using: str) -> bool:
    """Whether the queue is a table of the engine's own database."""
    from django_q.conf import Conf

    return bool(using == Conf.ORM)


def _send(task: str, row_id: str) -> None:
    from django_q.tasks import async_task

    name = f"{task.rpartition('.')[2]} {row_id}"
    async_task(task, row_id, q_options={"task_name": name})


def _send_late(task: str, row_id: str) -> None:
    """After a commit nothing may fail: the row is stored, and the sweep finds it."""
    try:
        _send(task, row_id)
    except Exception:
        logger.exception("wake-up not sent", extra={"run_id": row_id})
