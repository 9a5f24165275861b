"""Spreading a superstep: one lease per activation, and the last one that ends.

Every function stands in its caller's transaction and locks the run's row first, then
the lease's. Read `runtime/spread_steps.py` for who calls.

Note [A spread step]
~~~~~~~~~~~~~~~~~~~~
The drive that spreads a step gives its lease on the run away: to a holder that is no
process, without an end, so that nobody claims, edits or sweeps the run as one that is
free. Its activations have leases that run out, each with an epoch of its own; whoever
runs one proves both, the run's epoch and the activation's, with each write. So a worker
that was stopped writes nothing, be it that its activation was taken over or that the
run ended meanwhile. As every end locks the run's row, exactly one of them is the last;
in its transaction the run becomes free again and is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import F, Min, Q
from django.db.models.functions import Coalesce, Now
from uuid_utils.compat import uuid7

from stateknot.conf import get_settings
from stateknot.errors import LeaseError
from stateknot.kernel.lost import loss_failure
from stateknot.kernel.profile import decode, encode
from stateknot.kernel.records import Activation, ActivationClaim, Event, Fence
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import ActivationLease, NodeAttempt, Run
from stateknot.models.activations import SPREAD
from stateknot.storage.holding import held_run
from stateknot.storage.journal import append_journal
from stateknot.storage.losses import note_activation_loss
from stateknot.storage.rows import as_uuid, attempt_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.records import AttemptRecord
    from stateknot.kernel.vocabulary import JsonValue

_WITHOUT_END = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Whether the last activation ended, or else the lease to wake next, if any."""

    is_last: bool
    following: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An activation that was claimed; `ended` where the claim gave it up instead."""

    activation_id: str
    fence: Fence
    ended: Ended | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutcome:
    """What became of an activation: its outcome's stored form and its last attempt."""

    activation_id: str
    data: dict[str, JsonValue]
    attempt: AttemptRecord


def spread(
    fence: Fence,
    activations: Sequence[Activation],
    *,
    at_once: int | None,
    events: Sequence[Event],
    active_seconds: float,
    using: str,
) -> list[str]:
    """Give each activation a lease, and the run's away; gives those to wake now.

    The others wait until one of these ends. Raises LeaseError.
    """
    run = held_run(fence, using)
    leases = ActivationLease.objects.using(using)
    leases.filter(run=run).delete()
    rows = [
        ActivationLease(
            id=uuid7(),
            run=run,
            head_id=run.head_id,
            run_epoch=run.epoch,
            activation_id=activation.id,
            place=place,
        )
        for place, activation in enumerate(activations)
    ]
    leases.bulk_create(rows)
    told = Event(kind="step.spread", data={"activations": len(rows)})
    append_journal(run, (*events, told), using=using)
    Run.objects.using(using).filter(id=run.id).update(
        holder=SPREAD,
        lease_expires_at=_WITHOUT_END,
        active_seconds=F("active_seconds") + active_seconds,
        next_journal=run.next_journal,
        event_count=run.event_count,
    )
    return [str(row.id) for row in rows[:at_once]]


def claim_activation(lease_id: str, holder: str, using: str) -> Taken | None:
    """Take the lease of an activation; None when there is nothing to run.

    Nor in a run that is to be cancelled.

    Over a lease that ran out its worker is recorded as lost; after
    `worker_lost_limit` of them the activation has failed.
    """
    uuid = as_uuid(lease_id)
    if uuid is None:
        return None
    leases = ActivationLease.objects.using(using)
    run_id = leases.filter(id=uuid).values_list("run_id", flat=True).first()
    spread_runs = Run.objects.using(using).filter(
        holder=SPREAD, cancel_requested_at=None
    )
    runs = spread_runs.select_for_update()
    run = runs.filter(id=run_id).first() if run_id is not None else None
    if run is None:
        return None
    free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=Now())
    lease: ActivationLease | None = (
        leases.select_for_update()
        .filter(free, id=uuid, run_epoch=run.epoch, ended_at=None)
        .first()
    )
    if lease is None:
        return None
    lease.epoch += 1
    own = ActivationClaim(lease_id=lease_id, epoch=lease.epoch, holder=holder)
    taken = Taken(
        activation_id=lease.activation_id,
        fence=Fence(run_id=str(run.id), epoch=run.epoch, holder=SPREAD, activation=own),
    )
    if lease.holder and _is_given_up(run, lease, using):
        return replace(taken, ended=_give_up(run, lease, using))
    leases.filter(id=lease.id).update(
        epoch=lease.epoch,
        holder=holder,
        lease_expires_at=Now() + timedelta(seconds=get_settings().lease_seconds),
        started_at=Coalesce("started_at", Now()),
    )
    return taken


def _is_given_up(run: Run, lease: ActivationLease, using: str) -> bool:
    """Record a lost worker; whether it was one too many."""
    lost_at: Any = lease.lease_expires_at
    note_activation_loss(run, lease.activation_id, lost_at, using)
    lease.losses += 1
    facts = {"holder": lease.holder, "epoch": run.epoch, "lost": 1}
    event = Event(kind="lease.expired", node=_node(lease), data=facts)
    append_journal(run, [event], using=using)
    run.save(using=using, update_fields=["next_journal", "event_count"])
    rows = ActivationLease.objects.using(using).filter(id=lease.id)
    rows.update(losses=lease.losses)
    return lease.losses >= get_settings().worker_lost_limit


def _node(lease: ActivationLease) -> str:
    return lease.activation_id.split(":", 2)[-1]


def _give_up(run: Run, lease: ActivationLease, using: str) -> Ended:
    """End an activation whose workers were lost too often, as one that failed."""
    activation = Activation(node=_node(lease), id=lease.activation_id)
    failure = loss_failure((activation,), lease.losses)
    last = (
        NodeAttempt.objects.using(using)
        .filter(run=run, lineage=run.lineage, activation_id=lease.activation_id)
        .order_by("-number")
        .first()
    )
    outcome = {"failure": failure.to_json(), "attempt": str(last.id) if last else ""}
    return _end(run, lease, outcome, using)


def require_activation(fence: Fence, own: ActivationClaim, using: str) -> None:
    """Lock the activation's lease. Raises LeaseError when another holder has it."""
    held = ActivationLease.objects.using(using).select_for_update()
    if not held.filter(**_proof(fence, own)).exists():
        raise LeaseError(fence.run_id, own.epoch)


def _proof(fence: Fence, own: ActivationClaim) -> dict[str, Any]:
    return {
        "id": own.lease_id,
        "run_id": fence.run_id,
        "run_epoch": fence.epoch,
        "epoch": own.epoch,
        "holder": own.holder,
        "ended_at": None,
    }


def renew_activation(
    fence: Fence, own: ActivationClaim, lease: timedelta, using: str
) -> bool:
    """Extend an activation's lease; True, and not extended, if its run is to be
    cancelled. Raises LeaseError when it or the run was lost."""
    held = ActivationLease.objects.using(using).filter(
        **_proof(fence, own), run__epoch=fence.epoch, run__holder=SPREAD
    )
    going = held.filter(run__cancel_requested_at=None)
    if going.update(lease_expires_at=Now() + lease):
        return False
    if held.exists():
        return True
    raise LeaseError(fence.run_id, own.epoch)


def free_activation(fence: Fence, own: ActivationClaim, using: str) -> None:
    """Give an activation's lease back, for another worker; nothing if it was lost."""
    rows = ActivationLease.objects.using(using).filter(**_proof(fence, own))
    rows.update(holder="", lease_expires_at=None)


def end_activation(fence: Fence, outcome: dict[str, JsonValue], using: str) -> Ended:
    """Store what became of an activation. The caller has just recorded its attempt
    under the same fence, so the run's row and the lease are locked."""
    run = held_run(fence, using, holder=SPREAD)
    own = fence.activation
    leases = ActivationLease.objects.using(using)
    lease = leases.filter(**_proof(fence, own)).first() if own is not None else None
    if lease is None:
        raise LeaseError(fence.run_id, fence.epoch)
    return _end(run, lease, outcome, using)


def _end(
    run: Run, lease: ActivationLease, outcome: dict[str, JsonValue], using: str
) -> Ended:
    leases = ActivationLease.objects.using(using)
    leases.filter(id=lease.id).update(
        outcome=encode(outcome), ended_at=Now(), holder="", lease_expires_at=None
    )
    still_open = leases.filter(run=run, ended_at=None)
    if still_open.exists():
        waiting = still_open.filter(woken_at=None).order_by("place")
        following = waiting.values_list("id", flat=True).first()
        return Ended(is_last=False, following=str(following) if following else None)
    began = leases.filter(run=run).aggregate(began=Min("started_at"))["began"]
    now = leases.filter(id=lease.id).values_list("ended_at", flat=True)[0]
    seconds = max(0.0, (now - began).total_seconds()) if began and now else 0.0
    Run.objects.using(using).filter(id=run.id).update(
        holder="",
        lease_expires_at=None,
        status=RunStatus.PENDING.value,
        active_seconds=F("active_seconds") + seconds,
        woken_at=Now(),
    )
    return Ended(is_last=True)


def stored_outcomes(run_id: str, head_id: str, using: str) -> list[StoredOutcome]:
    """What became of the activations of the step behind `head_id`, in active order."""
    leases = ActivationLease.objects.using(using).filter(
        run_id=run_id, head_id=head_id, ended_at__isnull=False
    )
    found = [
        (row.activation_id, decode(row.outcome))
        for row in leases.order_by("place")
        if row.outcome is not None
    ]
    ids = [data["attempt"] for _, data in found if data["attempt"]]
    rows = NodeAttempt.objects.using(using).filter(id__in=ids)
    attempts = {str(row.id): attempt_record(row) for row in rows}
    return [
        StoredOutcome(activation_id=name, data=data, attempt=attempts[data["attempt"]])
        for name, data in found
        if data["attempt"] in attempts
    ]
