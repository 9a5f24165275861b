"""Starting a run on a thread that another run holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stateknot.errors import RunError
from stateknot.kernel.records import Event
from stateknot.kernel.writes import Cancellation
from stateknot.models import Run
from stateknot.storage.rows import as_key

if TYPE_CHECKING:
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.writes import Admission
    from stateknot.storage import DjangoCheckpointer

ON_BUSY = ("reject", "enqueue", "supersede")


def require_on_busy(given: str) -> None:
    """Refuse what is no way to start. Raises RunError."""
    if given not in ON_BUSY:
        known = ", ".join(repr(name) for name in ON_BUSY)
        raise RunError(f"on_busy is {given!r}; use one of {known}")


def supersede(store: DjangoCheckpointer, admission: Admission) -> RunRecord:
    """Cancel the run that holds the thread, and begin behind it.

    At once where that run was at rest: its questions are closed, and its journal says
    so and by which run it was superseded. A driven one ends first.
    Transaction: the caller's.
    """
    # Locked first, so that it cannot end between the question and the cancel.
    current = Run.objects.using(store.using).filter(
        current_of__key=as_key(admission.thread_id)
    )
    list(current.select_for_update(of=("self",)).values_list("id"))
    holder = store.find_thread_run(admission.thread_id)
    if holder is None or not holder.status.is_holding:
        return store.enqueue(admission)
    if not holder.is_to_be_cancelled:
        reason = f"superseded by run {admission.run_id}"
        asked = Cancellation(run_id=holder.id, reason=reason, actor=admission.actor)
        store.cancel(asked)
    told = Event(kind="run.supersedes", data={"run_id": holder.id})
    return store.enqueue(replace(admission, events=(*admission.events, told)))
