"""What a stored request to cancel makes of a run: both stores ask here.

A run that somebody drives is asked to stop, any other ends at once. Behind a stored
request a run comes to rest in one way only. See Note [Rests as cancelled].

Note [Rests as cancelled]
~~~~~~~~~~~~~~~~~~~~~~~~~
Whatever a driver writes last under a request (a boundary at which the run would end,
pause, wait or fail, a limit, a released lease), the store ends the run as cancelled in
that same transaction. It is therefore decided by the order in which the run's row is
locked, and a result that comes late cannot change the status. A boundary behind which
the run would go on is stored as it is, and its driver is told to stop: what was
finished stays readable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from stateknot.errors import RunError
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.writes import Boundary

REQUESTED: Final = "run.cancel_requested"
CANCELLED: Final = "run.cancelled"
_ENDS: Final = frozenset({"run.completed", "run.failed", "run.closing", "run.deferred"})
"""What a run is told to have come to, had nobody cancelled it."""


def require_can_cancel(run: RunRecord) -> None:
    """Refuse to cancel a part of a run, or one that ended otherwise. Raises RunError.

    One that was cancelled already is not refused: the wish is fulfilled.
    """
    if run.parent_run_id is not None:
        raise RunError(
            f"run {run.id} is part of run {run.root_run_id}; cancel that one, and its "
            "children end with it"
        )
    if run.status in (RunStatus.COMPLETED, RunStatus.FAILED):
        raise RunError(f"run {run.id} is {run.status}; nothing is left to cancel")


def requested(reason: str) -> Event:
    """That somebody asked; the journal's row names who."""
    return Event(kind=REQUESTED, data={"reason": reason})


def cancelled(run_id: str, reason: str, waits: Sequence[str] = ()) -> Event:
    """That a run ended as cancelled; `waits` are the open ones that closed with it."""
    data = {"run_id": run_id, "reason": reason}
    return Event(kind=CANCELLED, data={**data, "waits": list(waits)} if waits else data)


def without_ends(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events without one that tells of another end than the run's."""
    return tuple(event for event in events if event.kind not in _ENDS)


def as_cancelled(boundary: Boundary) -> Boundary:
    """What is stored of a boundary under a request. See Note [Rests as cancelled].

    Its results stand; a question of it is not asked any more.
    """
    if boundary.status is RunStatus.RUNNING:
        return boundary
    return replace(
        boundary,
        status=RunStatus.CANCELLED,
        waits=(),
        delivered_waits=(),
        events=without_ends(boundary.events),
        error=None,
        output=None,
    )
