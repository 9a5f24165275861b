"""Which events a superstep makes: of what was folded, and of its boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus

if TYPE_CHECKING:
    from stateknot.kernel.commands import Interrupt
    from stateknot.kernel.failure import NodeFailure
    from stateknot.kernel.outcome import Asked
    from stateknot.kernel.records import Activation
    from stateknot.kernel.superstep import SuperstepPlan
    from stateknot.runtime.events import EventLog

SAVED = "checkpoint.saved"
_LONGEST_TEXT = 500


def tell_outcomes(log: EventLog, plan: SuperstepPlan, step: int) -> list[str]:
    """Tell what was folded and what decided; gives the nodes visited, in fold order."""
    visited = []
    for activation, outcome in plan.done:
        visited.append(activation.node)
        if outcome.update is not None:
            log.tell("state.updated", step=step, node=activation.node)
        log.tell("node.completed", step=step, node=activation.node)
        for question in outcome.asks:
            _tell_question(log, activation, question, step)
    if plan.failure is not None:
        text = f"{plan.failure.error_type}: {plan.failure.message}"[:_LONGEST_TEXT]
        log.tell("node.failed", step=step, node=plan.failure.node_id, error=text)
    else:
        for activation, asked in plan.asked:
            visited += _tell_asked(log, activation, asked, step)
    for event in plan.events:
        log.pass_on(event)
    return visited


def _tell_asked(
    log: EventLog, activation: Activation, asked: Asked, step: int
) -> list[str]:
    """Tell new questions; one that stood open before is not asked again."""
    if asked.is_open:
        return []
    for question in asked.interrupts:
        _tell_question(log, activation, question, step)
    return [activation.node]


def _tell_question(
    log: EventLog, activation: Activation, question: Interrupt, step: int
) -> None:
    node = question.node or activation.node
    log.tell("interrupt.emitted", step=step, node=node, key=question.key)


def boundary_events(
    plan: SuperstepPlan,
    *,
    run_id: str,
    checkpoint_id: str,
    step: int,
    steps: int,
    status: RunStatus,
    failure: NodeFailure | None,
) -> tuple[Event, ...]:
    """That a boundary is written, first, and how the run stands behind it.

    They are journalled with it, and told live when it is written.
    """
    events = [Event(kind=SAVED, data={"checkpoint": checkpoint_id})]
    if plan.source is CheckpointSource.LOOP and failure is None:
        events.append(Event(kind="step.completed", step=step))
    if status is RunStatus.COMPLETED:
        data = {"run_id": run_id, "steps": steps}
        events.append(Event(kind="run.completed", data=data))
    elif status is RunStatus.FAILED and failure is not None:
        data = {"run_id": run_id, "error": failure.message[:_LONGEST_TEXT]}
        events.append(Event(kind="run.failed", data=data))
    return tuple(events)
