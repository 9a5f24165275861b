"""Ending a run as cancelled, with everything it began. The caller holds its row.

Read `stateknot/kernel/cancelling.py` for what a request makes of a run. A run's row is
locked before its children's, here as in a drive that takes up a child, so that the two
cannot wait for each other.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Now

from stateknot.conf import get_settings
from stateknot.kernel.cancelling import cancelled, requested, without_ends
from stateknot.kernel.vocabulary import RunStatus, WaitStatus
from stateknot.models import NodeAttempt, Run, Wait
from stateknot.models.activations import SPREAD
from stateknot.models.runs import HOLDING
from stateknot.storage.journal import append_journal
from stateknot.storage.losses import lose_begun
from stateknot.storage.resting import resting_changes
from stateknot.storage.rows import STANDING_WAITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.records import Event
    from stateknot.kernel.writes import Cancellation


def cancel(
    run: Run, cancellation: Cancellation, *, is_driven: bool, using: str
) -> None:
    """End a run, or ask its driver and those of its children to stop.

    A child that nobody drives ends at once in any case. Locks: the children's rows.
    """
    reason, actor = cancellation.reason, cancellation.actor
    is_new = run.cancel_requested_at is None
    events = (requested(reason),) if is_new else ()
    if is_new:
        run.cancel_reason = reason
    if not is_driven:
        end_cancelled(run, events, using, actor=actor)
    elif is_new:
        _ask(run, using, actor)
        driven = {*_family(run, using).filter(lease_expires_at__gt=Now())}
        for child in _family(run, using).order_by("id").select_for_update():
            child.cancel_reason = reason
            if child in driven:
                _ask(child, using, actor)
            else:
                end_cancelled(child, (requested(reason),), using, actor=actor)


def end_cancelled(
    run: Run, events: Sequence[Event], using: str, *, actor: str = ""
) -> None:
    """End a run without a checkpoint, and tell `events` before it.

    Whoever holds it or a child of it is refused from then on.
    """
    told = cancelled(str(run.id), run.cancel_reason, close_family(run, using))
    append_journal(run, (*without_ends(events), told), using=using, actor=actor)
    _save(run, using, **resting_changes(RunStatus.CANCELLED, None))


def close_family(run: Run, using: str) -> list[str]:
    """End a run's children, and close what they and it wait for; gives the open ones.

    Attempts that were begun in a commit of their own are lost: nobody will end them.

    Locks: the children's rows.
    """
    for child in _family(run, using).order_by("id").select_for_update():
        child.cancel_reason = run.cancel_reason
        end_cancelled(child, (), using)
    lose_begun(NodeAttempt.objects.using(using).filter(run=run))
    standing = Wait.objects.using(using).filter(run=run, status__in=STANDING_WAITS)
    asked = standing.filter(status=WaitStatus.OPEN.value).order_by("id")
    ids = [str(pk) for pk in asked.values_list("id", flat=True)]
    standing.update(status=WaitStatus.CLOSED.value)
    return ids


def _ask(run: Run, using: str, actor: str) -> None:
    """Store the request.

    Its journal row moves the number that a boundary's fence names, so that the next
    boundary reads the run again: asking costs a drive that nobody cancels nothing. The
    lease of a run whose step is spread had no end and gets one, which bounds the cancel
    for it as well.
    """
    append_journal(run, (requested(run.cancel_reason),), using=using, actor=actor)
    if run.holder == SPREAD:
        lease = timedelta(seconds=get_settings().lease_seconds)
        _save(run, using, lease_expires_at=Now() + lease)
    else:
        _save(run, using)


def _save(run: Run, using: str, **changes: Any) -> None:
    if run.cancel_requested_at is None:
        changes["cancel_requested_at"] = Now()
    if run.queued_input is not None and "status" in changes:
        changes["queued_input"] = None
    Run.objects.using(using).filter(id=run.id).update(
        cancel_reason=run.cancel_reason,
        next_journal=run.next_journal,
        event_count=run.event_count,
        **changes,
    )


def _family(run: Run, using: str) -> Any:
    """The run's children and theirs that have not ended; only a root has any here."""
    return (
        Run.objects.using(using)
        .filter(root_run_id=run.id, status__in=HOLDING)
        .exclude(id=run.id)
    )
