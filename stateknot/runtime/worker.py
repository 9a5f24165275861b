"""A worker's pass over a run: claim, drive, give back.

The same `Drive` as in the caller's process, under a lease that expires. A run of a
revision that this process does not have is left for one that has it, before it is
claimed and before any handler runs.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stateknot.errors import (
    LeaseError,
    RevisionMismatchError,
    StaleCheckpointError,
    StoreLostError,
    ThreadBusyError,
)
from stateknot.kernel.commands import Command, ResumeTarget
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.records import Event
from stateknot.kernel.retry import is_retryable
from stateknot.kernel.vocabulary import RunStatus, WaitStatus
from stateknot.kernel.writes import Cancellation
from stateknot.registry import find_graph
from stateknot.runtime.admission import find_standing, reopen
from stateknot.runtime.budget import Quantum
from stateknot.runtime.child_revisions import hosts_children, require_child_code
from stateknot.runtime.child_stops import ChildOfOtherCode
from stateknot.runtime.closing import settle
from stateknot.runtime.config import LONGEST_SLEEP_SECONDS
from stateknot.runtime.driving import drive_claimed, release
from stateknot.runtime.holders import holder_name
from stateknot.runtime.slots import slots_of
from stateknot.runtime.spread_steps import spreader_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.records import Fence, RunRecord, WaitRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.graph import CompiledGraph

logger = logging.getLogger("stateknot")

_CLAIMABLE = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING)
"""What a claim may find due. Elsewhere not even the graph is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What a pass did. `wants_more` asks for another wake-up."""

    run_id: str
    status: RunStatus | None = None
    steps: int = 0
    wants_more: bool = False


def drive_run(store: Store, run_id: str, quantum: Quantum | None = None) -> Driven:
    """Drive a run that is due, as far as the quantum goes; do nothing if it is not.

    Idempotent: a second call for the same run finds the lease taken or the run at rest.
    A child run is left to its parent's drive; a closing run is settled, by any process.
    Raises RevisionMismatchError when this process has other code than the run, or than
    a child of it that would go on.
    """
    run = store.find_run(run_id)
    if run is not None and run.status is RunStatus.CLOSING:
        is_settled = settle(store, run_id)
        status = RunStatus.FAILED if is_settled else RunStatus.CLOSING
        return Driven(run_id=run_id, status=status)
    if run is None or run.status not in _CLAIMABLE:
        return Driven(run_id=run_id)
    if run.parent_run_id is not None:
        return Driven(run_id=run_id)
    if run.is_to_be_cancelled:
        return Driven(run_id=run_id, status=_end_cancelled(store, run))
    graph = find_graph(run.graph_id, digest=run.digest)
    if graph is None:
        newest = find_graph(run.graph_id)
        raise RevisionMismatchError(
            run.digest,
            newest.digest if newest else None,
            run.graph_id,
            run.thread_id,
        )
    if hosts_children(graph):
        head = store.find_checkpoint(run.thread_id, run.head_id, run.namespace)
        require_child_code(store, graph, head)
    with store.atomic():
        holder = holder_name(graph.config.clock.new_id())
        fence = store.claim(run_id, holder, slots=slots_of(run.graph_id))
        claimed = store.find_run(run_id)
    if fence is None or claimed is None:
        return Driven(run_id=run_id)
    return drive_on(store, graph, claimed, fence, quantum)


def _end_cancelled(store: Store, run: RunRecord) -> RunStatus:
    """End a run that is to be cancelled, if its driver's lease ran out."""
    with store.atomic():
        asked = Cancellation(run_id=run.id, reason=run.cancel_reason)
        return store.cancel(asked).status


def require_graph(run: RunRecord) -> CompiledGraph:
    """The revision that a run is of. Raises RevisionMismatchError without it."""
    graph = find_graph(run.graph_id, digest=run.digest)
    if graph is not None:
        return graph
    newest = find_graph(run.graph_id)
    raise RevisionMismatchError(
        run.digest, newest.digest if newest else None, run.graph_id, run.thread_id
    )


def drive_on(
    store: Store,
    graph: CompiledGraph,
    run: RunRecord,
    fence: Fence,
    quantum: Quantum | None,
) -> Driven:
    """Drive a run that was claimed as far as the quantum goes, and give it back."""
    here = on_worker(graph, store, run)
    try:
        end = drive_claimed(
            here,
            store,
            run,
            fence,
            quantum=quantum,
            frees_on_exit=False,
            spreader=spreader_of(here, store),
        )
    except ChildOfOtherCode as stop:
        raise stop.refusal from None
    except StoreLostError as error:
        logger.warning("%s", error, extra={"run_id": run.id})
        return Driven(run_id=run.id)
    except LeaseError:
        logger.warning("lease lost", extra={"run_id": run.id, "epoch": fence.epoch})
        return Driven(run_id=run.id)
    except Exception as error:
        if is_retryable(error):
            raise
        logger.exception("drive failed", extra={"run_id": run.id})
        return _break_off(store, graph, run, error)
    except SystemExit as ending:
        _note_exit(store, run, fence, ending)
        raise
    if end.status is RunStatus.RUNNING:
        wants_more = release(store, fence)
    else:
        paused = end.status is RunStatus.INTERRUPTED
        wants_more = paused and _took_up_answers(store, run.id)
    return Driven(
        run_id=run.id, status=end.status, steps=end.steps, wants_more=wants_more
    )


def _note_exit(store: Store, run: RunRecord, fence: Fence, ending: SystemExit) -> None:
    """Record that a handler ended this process, for the process cannot do it later.

    The queue's timeout (a subclass: django-q2 raises it into the handler) fails the
    run, since another worker would only meet it again. After a `sys.exit` another one
    tries: the lease is left to run out, so that its claim counts this worker as lost.
    """
    logger.error("process ended by a node: %r", ending, extra={"run_id": run.id})
    if type(ending) is SystemExit:
        return
    try:
        with store.atomic():
            _fail(store, fence, ending, code="runtime.timeout")
    except Exception:
        # Its connection may have been cut off in the middle of a statement. The lease
        # runs out, and the end is counted as a loss.
        logger.exception("end not recorded", extra={"run_id": run.id})


def on_worker(graph: CompiledGraph, store: Store, run: RunRecord) -> CompiledGraph:
    """The graph as a worker drives it."""
    config = replace(
        graph.config,
        checkpointer=store,
        namespace=run.namespace,
        longest_sleep_seconds=LONGEST_SLEEP_SECONDS,
    )
    return graph.configured(config)


def _break_off(
    store: Store, graph: CompiledGraph, run: RunRecord, error: Exception
) -> Driven:
    """Fail a run that the engine itself could not drive, so that somebody sees it.

    Left as it is, the sweep would wake it for ever. The last boundary stands. A fault
    of the world (the database was away) is not one of these: the sweep tries again.
    """
    with store.atomic():
        fence = store.claim(run.id, holder_name(graph.config.clock.new_id()))
        if fence is None:
            return Driven(run_id=run.id)
        _fail(store, fence, error, code="runtime.fault")
    return Driven(run_id=run.id, status=RunStatus.FAILED)


def _fail(store: Store, fence: Fence, error: BaseException, *, code: str) -> None:
    failure = NodeFailure.of(
        error, node_id="", activation_id="", kind="engine", code=code
    )
    told = Event(kind="run.failed", data={"error": failure.message[:500]})
    store.finish(fence, RunStatus.FAILED, error=failure.to_json(), events=(told,))


def _took_up_answers(store: Store, run_id: str) -> bool:
    try:
        return take_up_answers(store, run_id)
    except (StaleCheckpointError, ThreadBusyError):
        # An answer or a sweep reopened it in between, and another worker has it.
        return False


def take_up_answers(store: Store, run_id: str) -> bool:
    """Reopen a paused run that was answered while it was still being driven.

    Its answer found the run busy and so could not reopen it; without this the run would
    pause with nothing left to answer.
    """
    with store.atomic():
        run = store.find_run(run_id)
        if run is None or run.status is not RunStatus.INTERRUPTED:
            return False
        if not _has_new_answer(store.list_waits(run.thread_id, run.namespace)):
            return False
        graph = find_graph(run.graph_id, digest=run.digest)
        if graph is None:
            return False
        config = replace(graph.config, namespace=run.namespace)
        standing = find_standing(store, run.thread_id, ResumeTarget.latest(), config)
        reopen(store, standing, Command(), config, digest=None)
        return True


def _has_new_answer(waits: Sequence[WaitRecord]) -> bool:
    """Whether an activation has all its answers, one of which it has not seen."""
    asking = {wait.activation_id for wait in waits if wait.status is WaitStatus.OPEN}
    return any(
        wait.status is WaitStatus.ANSWERED and wait.activation_id not in asking
        for wait in waits
    )
