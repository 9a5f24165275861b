"""A worker's part in a superstep that is spread: one activation, maybe the barrier.

Read `spread_steps.py` for how it is run and stored, `worker.py` for what follows.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stateknot.errors import LeaseError, RunCancelledError, StoreLostError
from stateknot.models import ActivationLease
from stateknot.runtime.child_stops import ChildOfOtherCode
from stateknot.runtime.holders import holder_name
from stateknot.runtime.spread_steps import follow, run_part
from stateknot.runtime.worker import drive_on, on_worker, require_graph
from stateknot.storage.rows import as_uuid
from stateknot.storage.spreading import claim_activation

if TYPE_CHECKING:
    from stateknot.kernel.records import Fence, RunRecord
    from stateknot.runtime.budget import Quantum
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.worker import Driven
    from stateknot.storage import DjangoCheckpointer

logger = logging.getLogger("stateknot")


def run_activation(
    store: DjangoCheckpointer, lease_id: str, quantum: Quantum | None = None
) -> Driven | None:
    """Run one activation of a step that is spread, unless somebody does.

    Who stores the last one takes the run in the same transaction and drives it on for a
    quantum; None for all others. Raises RevisionMismatchError when this process has
    other code than the run.
    """
    run = _find_run(store, lease_id)
    if run is None:
        return None
    graph = on_worker(require_graph(run), store, run)
    fence = run_one(store, graph, run, lease_id)
    claimed = store.find_run(run.id)
    if fence is None or claimed is None:
        return None
    return drive_on(store, graph, claimed, fence, quantum)


def _find_run(store: DjangoCheckpointer, lease_id: str) -> RunRecord | None:
    uuid = as_uuid(lease_id)
    if uuid is None:
        return None
    leases = ActivationLease.objects.using(store.using).filter(id=uuid)
    run_id = leases.values_list("run_id", flat=True).first()
    return store.find_run(str(run_id)) if run_id is not None else None


def run_one(
    store: DjangoCheckpointer, graph: CompiledGraph, run: RunRecord, lease_id: str
) -> Fence | None:
    """Run an activation; gives the run's fence if it was the last of its step."""
    with store.atomic():
        holder = holder_name(graph.config.clock.new_id())
        taken = claim_activation(lease_id, holder, store.using)
        if taken is None:
            return None
        if taken.ended is not None:
            return follow(taken.ended, run.id, graph, store)
    try:
        return run_part(graph, store, run, taken.fence, taken.activation_id)
    except ChildOfOtherCode as stop:
        raise stop.refusal from None
    except StoreLostError as error:
        logger.warning("%s", error, extra={"run_id": run.id})
        return None
    except (LeaseError, RunCancelledError):
        extra = {"run_id": run.id, "epoch": run.epoch}
        logger.warning("activation lost", extra=extra)
        return None
