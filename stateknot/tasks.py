"""What django-q2 calls: a task takes one id and returns None; outcomes are rows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import transaction

from stateknot.conf import get_settings
from stateknot.errors import RevisionMismatchError
from stateknot.runtime.activations import run_activation
from stateknot.runtime.budget import Quantum
from stateknot.runtime.draining import is_draining
from stateknot.runtime.turns import choose, graph_limits
from stateknot.runtime.waking import wake, wake_activation
from stateknot.runtime.worker import drive_run
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from stateknot.runtime.worker import Driven

logger = logging.getLogger("stateknot")

_MOST_CHOICES = 4
"""How often a worker looks for a run, when others claimed those that it chose."""


def drive(run_id: str) -> None:
    """Drive a run for one quantum, and ask for another look if there is more to do.

    It is the named run, unless it is another one's turn. See Note [A wake-up is a
    ticket]. A worker that is about to end gives the wake-up back. See Note [Draining].
    """
    using = get_settings().database
    if is_draining():
        with transaction.atomic(using=using):
            wake(run_id)
        return
    driven = _drive_next(run_id)
    if driven is not None:
        _wake_behind(driven)


def activate(lease_id: str) -> None:
    """Run one activation of a step that is spread; behind the last one, the run."""
    if is_draining():
        with transaction.atomic(using=get_settings().database):
            wake_activation(lease_id)
        return
    try:
        driven = run_activation(DjangoCheckpointer(), lease_id, _quantum())
    except RevisionMismatchError as error:
        logger.warning("%s", error)
        return
    if driven is not None:
        _wake_behind(driven)


def _wake_behind(driven: Driven) -> None:
    """Wake for what is left of a run, or for the one that gets its slot."""
    using = get_settings().database
    if driven.wants_more:
        with transaction.atomic(using=using):
            wake(driven.run_id)
    elif graph_limits() or get_settings().max_running_total is not None:
        following = choose(None, using=using)
        if following is not None:
            with transaction.atomic(using=using):
                wake(following)


def _quantum() -> Quantum:
    settings = get_settings()
    return Quantum(
        supersteps=settings.quantum_supersteps,
        seconds=settings.quantum_seconds,
        is_over=is_draining,
    )


def _drive_next(run_id: str) -> Driven | None:
    """Drive what `choose` gives until something was driven; None if nothing was."""
    settings = get_settings()
    tried: list[str] = []
    for _ in range(_MOST_CHOICES):
        chosen = choose(run_id, using=settings.database, tried=tried)
        if chosen is None:
            return None
        try:
            driven = drive_run(DjangoCheckpointer(), chosen, _quantum())
        except RevisionMismatchError as error:
            logger.warning("%s", error, extra={"run_id": chosen})
        else:
            if driven.status is not None:
                return driven
        tried.append(chosen)
    return None
