"""From a superstep's decision to the boundary that is committed.

Decides nothing: it gives the plan its ids, attempts, questions and events, in the shape
that `Store.commit` takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.outcome import Asked, Completed
from stateknot.kernel.result_codec import encode_result
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus, WaitStatus
from stateknot.kernel.writes import Boundary, CheckpointDraft, Deferral
from stateknot.runtime.asking import (
    gated,
    new_gates,
    new_questions,
    new_timers,
)
from stateknot.runtime.config import own_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.failure import NodeFailure
    from stateknot.kernel.records import Activation, AttemptRecord, Event, WaitRecord
    from stateknot.kernel.superstep import SuperstepPlan
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.position import Position
    from stateknot.runtime.step_runner import StepResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A boundary without its checkpoint's final form, and what belongs to it."""

    draft: CheckpointDraft
    attempts: tuple[AttemptRecord, ...]
    folded: tuple[str, ...]
    waits: tuple[WaitRecord, ...]
    closed: tuple[str, ...]
    delivered: tuple[str, ...]

    def boundary(
        self,
        *,
        status: RunStatus,
        steps: int,
        active_seconds: float,
        events: tuple[Event, ...],
        failure: NodeFailure | None,
        output: Any,
    ) -> Boundary:
        """The boundary as the store takes it."""
        return Boundary(
            checkpoint=self.draft,
            status=status,
            steps=steps,
            active_seconds=active_seconds,
            attempts=self.attempts,
            folded_attempts=self.folded,
            waits=self.waits,
            closed_waits=self.closed,
            delivered_waits=self.delivered,
            events=events,
            error=failure.to_json() if failure else None,
            output=output,
        )


def draft_boundary(
    plan: SuperstepPlan,
    result: StepResult,
    position: Position,
    config: RunConfig,
    blueprint: Blueprint,
) -> Drafted:
    """Put a plan into the shape that is committed."""
    fold = blueprint.fold
    waits = new_questions(plan.asked, position, config, sequence=position.sequence + 1)
    gates = new_gates(plan.done, position, config)
    if plan.pending:
        waits += (*gates, *new_timers(plan.done, position, config))
    done = {activation.id for activation, _ in plan.done}
    closed = [w.id for a in done for w in position.waits.get(a, ())]
    closed += _superseded(plan, position)
    closed += [wait.id for wait in position.open_timers()]
    return Drafted(
        draft=CheckpointDraft(
            id=config.clock.new_id(),
            sequence=position.sequence + 1,
            lineage=position.lineage,
            parent_id=position.head_id,
            step=position.step + 1,
            source=plan.source,
            delta=_delta(plan, position, fold),
            pending=gated(plan, gates, blueprint),
            completed=tuple(activation for activation, _ in plan.done),
            joins=plan.joins,
            metadata=_metadata(plan, result, position, config),
            namespace=position.run.namespace,
        ),
        attempts=_attempts(plan.kept, result, fold),
        folded=_folded(plan, result, blueprint),
        waits=waits,
        closed=tuple(sorted(closed)),
        delivered=_delivered(plan, result, position),
    )


def _delta(plan: SuperstepPlan, position: Position, fold: Any) -> StateDelta:
    """What the step changed; the first record of a lineage holds every field."""
    if position.sequence + 1 > position.lineage:
        return plan.delta
    return StateDelta(changes=fold.codec.dump(plan.state, fold.codec.names))


def _metadata(
    plan: SuperstepPlan, result: StepResult, position: Position, config: RunConfig
) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if plan.failure is not None:
        metadata["failed_node"] = plan.failure.node_id
        metadata["error"] = plan.failure.to_json()
    elif plan.source is CheckpointSource.INTERRUPT:
        nodes = [activation.node for activation, _ in plan.asked]
        metadata["interrupted_nodes"] = nodes
    elif any(outcome.asks for _, outcome in plan.done):
        nodes = [activation.node for activation, o in plan.done if o.asks]
        metadata["interrupted_nodes"] = nodes
    children = (*result.reused_runs, *result.child_runs)
    if children:
        metadata["child_runs"] = [child.to_json() for child in children]
    if config.frames:
        own = own_frame(position.run, config)
        metadata["recursion"] = [frame.to_json() for frame in (*config.frames, own)]
    return metadata


def draft_deferral(
    delay_seconds: float,
    result: StepResult,
    position: Position,
    config: RunConfig,
    fold: Any,
) -> Deferral:
    """A superstep put off: its finished results and questions are kept for later."""
    kept = [(a, o) for a, o in result.outcomes if isinstance(o, Completed)]
    asked = [(a, o) for a, o in result.outcomes if isinstance(o, Asked)]
    return Deferral(
        delay_seconds=delay_seconds,
        attempts=_attempts(kept, result, fold),
        waits=new_questions(asked, position, config, sequence=position.sequence),
    )


def _attempts(
    results: Iterable[tuple[Activation, Completed]], result: StepResult, fold: Any
) -> tuple[AttemptRecord, ...]:
    """The step's attempts that were not flushed; those of `results` carry theirs."""
    kept = {activation.id: outcome for activation, outcome in results}
    fresh = []
    for attempt in result.attempts:
        if attempt.id in result.flushed:
            continue
        outcome = kept.get(attempt.activation_id)
        if outcome is not None:
            stored = encode_result(fold, attempt.node_id, outcome)
            attempt = replace(attempt, result=stored)
        fresh.append(attempt)
    return tuple(fresh)


def _folded(
    plan: SuperstepPlan, result: StepResult, blueprint: Blueprint
) -> tuple[str, ...]:
    """Results that stand in the store and are now folded, or can never be."""
    flushed = {a.activation_id: a.id for a in result.attempts if a.id in result.flushed}
    kept = {activation.id for activation, _ in plan.kept}
    folded = []
    refused = _refused(plan, result, blueprint)
    for activation, outcome in (*plan.done, *refused):
        stored = outcome.attempt_id or flushed.get(activation.id)
        if stored is not None and activation.id not in kept:
            folded.append(stored)
    return tuple(folded)


def _refused(
    plan: SuperstepPlan, result: StepResult, blueprint: Blueprint
) -> list[tuple[Activation, Completed]]:
    """A result that its reducer refused: it is dropped, and its node runs again.

    That of a node that must not run twice is kept, as the plan says.
    """
    if plan.failure is None or plan.failure.kind != "reducer":
        return []
    if blueprint.nodes[plan.failure.node_id].runs_once:
        return []
    return [
        (activation, outcome)
        for activation, outcome in result.outcomes
        if activation.id == plan.failure.activation_id
        and isinstance(outcome, Completed)
    ]


def _delivered(
    plan: SuperstepPlan, result: StepResult, position: Position
) -> tuple[str, ...]:
    """Answers that went to an activation which ran and is still pending.

    They are handed to it again when it runs again, but no longer call for that.
    """
    ran = {attempt.activation_id for attempt in result.attempts}
    return tuple(
        wait.id
        for activation in plan.pending
        if activation.id in ran
        for wait in position.waits.get(activation.id, ())
        if wait.status is WaitStatus.ANSWERED
    )


def _superseded(plan: SuperstepPlan, position: Position) -> list[str]:
    """Open questions whose activation ran again and asked anew."""
    asked_again = [a.id for a, outcome in plan.asked if not outcome.is_open]
    return [w.id for a in asked_again for w in position.open_waits(a)]


def status_behind(plan: SuperstepPlan, failure: NodeFailure | None) -> RunStatus:
    """The run's status behind a boundary."""
    if failure is not None:
        return RunStatus.FAILED
    if plan.source is CheckpointSource.INTERRUPT:
        return RunStatus.INTERRUPTED
    if plan.pending and any(outcome.asks for _, outcome in plan.done):
        return RunStatus.INTERRUPTED
    if plan.pending and any(outcome.timer for _, outcome in plan.done):
        return RunStatus.WAITING
    return RunStatus.RUNNING if plan.pending else RunStatus.COMPLETED
