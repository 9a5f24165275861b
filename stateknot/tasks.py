"""What django-q2 calls: a task takes one id and returns None; outcomes are rows."""

from __future__ import annotations

import logging

from django.db import transaction

from stateknot.conf import get_settings
from stateknot.errors import RevisionMismatchError
from stateknot.runtime.budget import Quantum
from stateknot.runtime.waking import wake
from stateknot.runtime.worker import drive_run
from stateknot.storage import DjangoCheckpointer

logger = logging.getLogger("stateknot")


def drive(run_id: str) -> None:
    """Drive a run for one quantum, and ask for another look if there is more to do."""
    settings = get_settings()
    quantum = Quantum(
        supersteps=settings.quantum_supersteps, seconds=settings.quantum_seconds
    )
    try:
        driven = drive_run(DjangoCheckpointer(), run_id, quantum)
    except RevisionMismatchError as error:
        logger.warning("%s", error, extra={"run_id": run_id})
        return
    if driven.wants_more:
        with transaction.atomic(using=settings.database):
            wake(run_id)
