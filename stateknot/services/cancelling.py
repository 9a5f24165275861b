"""Cancelling runs: a stored request, which their drivers and the sweep carry out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import RunError, SerializationError
from stateknot.kernel.profile import check_profile
from stateknot.kernel.writes import Cancellation
from stateknot.models import Run
from stateknot.services.actors import actor_name
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from uuid import UUID

LONGEST_REASON = 500


def cancel_run(run_id: str | UUID, *, reason: str, actor: Any = None) -> Run:
    """End a run as cancelled, or ask whoever drives it to stop.

    A run at rest has ended when this returns, one that is driven still is `running`,
    with `cancel_requested_at` set: it ends after the superstep it is in, at the latest
    with the first sweep after its lease ran out. Its child runs end with it, and what
    was asked is closed. What it finished stays readable.
    Transaction: its own, or the caller's. Idempotent: the first reason is kept.
    Raises NotFoundError, RunError for a run that ended otherwise, for a child run and
    for a reason that is too long.
    """
    store = DjangoCheckpointer()
    asked = Cancellation(
        run_id=str(run_id), reason=_checked(reason), actor=actor_name(actor)
    )
    with store.atomic():
        run = store.cancel(asked)
    return Run.objects.using(store.using).select_related("thread").get(id=run.id)


def _checked(reason: str) -> str:
    """The reason as it is stored. Raises RunError for one that no column takes."""
    text = reason.strip()
    try:
        check_profile(text, "reason")
    except SerializationError as error:
        raise RunError(str(error)) from error
    if len(text) > LONGEST_REASON:
        raise RunError(
            f"the reason has {len(text)} characters; {LONGEST_REASON} is the most"
        )
    return text
