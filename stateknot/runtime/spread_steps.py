"""Running a superstep on several workers: what they tell each other through the rows.

`Spreader` is what a drive spreads a step with and reads the outcomes by; `run_part` is
what a worker does with one activation. The barrier is the ordinary one: the drive that
goes on plans and commits it from outcomes that were stored, as if it had run the
handlers itself. See Note [A spread step] for leases and fences.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from stateknot.errors import LeaseError
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.outcome import Asked, Completed, Deferred, Failed
from stateknot.kernel.result_codec import (
    decode_question,
    decode_result,
    encode_question,
)
from stateknot.kernel.routing import with_ids
from stateknot.kernel.writes import Cancellation
from stateknot.runtime.drive import Drive
from stateknot.runtime.driving import drive_claimed
from stateknot.runtime.durability import Committer
from stateknot.runtime.events import EventLog
from stateknot.runtime.execution import ChildRun
from stateknot.runtime.heartbeat import Heartbeat
from stateknot.runtime.holders import holder_name
from stateknot.runtime.loop_thread import LoopThread
from stateknot.runtime.position import load_position
from stateknot.runtime.ran import Ran, stored_attempt
from stateknot.runtime.stopping import Stop
from stateknot.runtime.waking import wake_activation
from stateknot.runtime.watching import Watch
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.slots import can_spread
from stateknot.storage.spreading import (
    end_activation,
    free_activation,
    spread,
    stored_outcomes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.outcome import Outcome
    from stateknot.kernel.records import Activation, Event, Fence, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.position import Position
    from stateknot.storage.spreading import Ended

logger = logging.getLogger("stateknot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreader:
    """Spreads the steps of one drive, over the database `using`."""

    fold: StateFold
    using: str

    def spread(
        self,
        fence: Fence,
        activations: Sequence[Activation],
        *,
        at_once: int | None,
        events: Sequence[Event],
        active_seconds: float,
    ) -> None:
        """Give the lease on the run away, and wake workers for its activations.

        At most `at_once` of them. Raises LeaseError.
        """
        with transaction.atomic(using=self.using):
            woken = spread(
                fence,
                activations,
                at_once=at_once,
                events=events,
                active_seconds=active_seconds,
                using=self.using,
            )
            for lease_id in woken:
                wake_activation(lease_id)

    def load(self, position: Position) -> None:
        """Put what became of a step that was spread into the position."""
        pending = {a.id for a in with_ids(position.pending, position.step + 1)}
        for stored in stored_outcomes(position.run.id, position.head_id, self.using):
            if stored.activation_id not in pending:
                continue
            outcome = _decode(self.fold, stored.data, stored.attempt.result)
            if outcome is None:
                continue
            attempt = stored.attempt
            position.spread[stored.activation_id] = Ran(
                outcome=outcome, attempt=attempt, is_recorded=True
            )
            told: Any = stored.data.get("child_runs", ())
            position.spread_runs += [ChildRun.from_json(child) for child in told]


def spreader_of(graph: CompiledGraph, store: Store) -> Spreader | None:
    """What a worker's drive of `graph` spreads steps with; None where it does not.

    On SQLite there is one writer, and a step runs in the one process.
    """
    if not graph.config.spread or not isinstance(store, DjangoCheckpointer):
        return None
    if not can_spread(store.using):
        return None
    return Spreader(fold=graph.blueprint.fold, using=store.using)


def run_part(
    graph: CompiledGraph,
    store: DjangoCheckpointer,
    run: RunRecord,
    fence: Fence,
    activation_id: str,
) -> Fence | None:
    """Run one activation of a step that is spread, and store what became of it.

    Gives the fence of the run where it was the last one. Raises LeaseError when it was
    taken over, or the run ended.
    """
    log = EventLog(graph.config.sinks)
    watch = Watch(graph.config, store, run)
    log.attach(watch.sinks)
    stop = Stop(store, fence)
    committer = Committer(store, fence, log, stop)
    drive = Drive(graph.blueprint, graph.config, store, fence, committer, drive_claimed)
    loop = LoopThread(store.thread_finished, drive.stop)
    try:
        with Heartbeat(store, stop, run.id):
            steps = drive.step_runner(loop)
            position = load_position(store, graph.blueprint, run)
            position.pending = with_ids(position.pending, position.step + 1)
            due = next(a for a in position.pending if a.id == activation_id)
            ran = steps.run_one(position, due)
            told = steps.nodes.told.take()
            return _end(graph, committer, ran, told, store)
    except (LeaseError, SystemExit):
        # A handler that ends its process is lost with it, and is counted like that.
        raise
    except BaseException:
        if fence.activation is not None:
            free_activation(fence, fence.activation, store.using)
        raise
    finally:
        loop.close()
        watch.close()


def _end(
    graph: CompiledGraph,
    committer: Committer,
    ran: Ran,
    children: Sequence[ChildRun],
    store: DjangoCheckpointer,
) -> Fence | None:
    """Store the attempt, what was told and the outcome in one transaction."""
    attempt = ran.attempt
    if not ran.is_recorded:
        attempt = stored_attempt(graph.blueprint.fold, ran)
    outcome = _encode(ran.outcome)
    outcome["attempt"] = attempt.id
    outcome["child_runs"] = [child.to_json() for child in children]
    with store.atomic():
        committer.record([] if ran.is_recorded else [attempt])
        ended = end_activation(committer.fence, outcome, store.using)
        return follow(ended, committer.fence.run_id, graph, store)


def follow(
    ended: Ended, run_id: str, graph: CompiledGraph, store: DjangoCheckpointer
) -> Fence | None:
    """Claim the run behind its last activation, or wake for the next one.

    A run that is to be cancelled ends instead.
    """
    if ended.is_last:
        fence = store.claim(run_id, holder_name(graph.config.clock.new_id()))
        run = store.find_run(run_id) if fence is None else None
        if run is not None and run.is_to_be_cancelled:
            store.cancel(Cancellation(run_id=run_id, reason=run.cancel_reason))
        return fence
    if ended.following is not None:
        wake_activation(ended.following)
    return None


def _encode(outcome: Outcome) -> dict[str, JsonValue]:
    """An outcome without its result, which stands with the attempt."""
    if isinstance(outcome, Failed):
        return {"failure": outcome.failure.to_json()}
    if isinstance(outcome, Deferred):
        return {"delay_seconds": outcome.delay_seconds}
    if isinstance(outcome, Asked):
        return {"asked": [encode_question(asked) for asked in outcome.interrupts]}
    return {}


def _decode(fold: StateFold, data: dict[str, Any], result: Any) -> Outcome | None:
    """The outcome; None for a result that has no stored form, which runs again."""
    if "failure" in data:
        return Failed(failure=NodeFailure.from_json(data["failure"]))
    if "delay_seconds" in data:
        return Deferred(delay_seconds=data["delay_seconds"])
    if "asked" in data:
        asked = tuple(decode_question(question) for question in data["asked"])
        return Asked(interrupts=asked)
    if result is None:
        return None
    done: Completed = decode_result(fold, result, data["attempt"])
    return done
