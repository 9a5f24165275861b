"""Questions and timers of a superstep, in the shape that is stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stateknot.kernel.outcome import Asked
from stateknot.kernel.records import WaitRecord
from stateknot.kernel.vocabulary import WaitKind, WaitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.commands import Interrupt, Timer
    from stateknot.kernel.outcome import Completed
    from stateknot.kernel.records import Activation
    from stateknot.kernel.superstep import SuperstepPlan
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.position import Position


def new_questions(
    asked: Iterable[tuple[Activation, Asked]],
    position: Position,
    config: RunConfig,
    *,
    sequence: int,
) -> tuple[WaitRecord, ...]:
    """The questions that activations asked in this superstep, in active order.

    `sequence` is that of the checkpoint that shows them.
    """
    return tuple(
        replace(
            _question(question, activation, place, position, config), sequence=sequence
        )
        for activation, outcome in asked
        for place, question in enumerate(outcome.interrupts)
    )


def new_gates(
    done: Iterable[tuple[Activation, Completed]], position: Position, config: RunConfig
) -> tuple[WaitRecord, ...]:
    """The questions that activations completed into: their successors wait for them."""
    asked = [
        (activation, Asked(interrupts=outcome.asks))
        for activation, outcome in done
        if outcome.asks
    ]
    return new_questions(asked, position, config, sequence=position.sequence + 1)


def gated(
    plan: SuperstepPlan, gates: tuple[WaitRecord, ...], blueprint: Blueprint
) -> tuple[Activation, ...]:
    """The plan's pending list, in which successors name the questions they wait for."""
    if not gates:
        return plan.pending
    # By id, since an activation keeps its id when a move gives its node a new name.
    nodes = {activation.id: activation.node for activation, _ in plan.done}
    after: dict[str, list[str]] = {}
    for gate in gates:
        node = nodes[gate.activation_id]
        for target in blueprint.wait_to.get(node, ()):
            after.setdefault(target, []).append(gate.public_id)
    return tuple(
        replace(activation, after=tuple(after[activation.node]))
        if not activation.id and activation.is_plain and activation.node in after
        else activation
        for activation in plan.pending
    )


def new_timers(
    done: Iterable[tuple[Activation, Completed]], position: Position, config: RunConfig
) -> tuple[WaitRecord, ...]:
    """The timers that activations completed into."""
    return tuple(
        _timer(outcome.timer, activation, position, config)
        for activation, outcome in done
        if outcome.timer is not None
    )


def _question(
    question: Interrupt,
    activation: Activation,
    place: int,
    position: Position,
    config: RunConfig,
) -> WaitRecord:
    expires = question.expires_in
    return WaitRecord(
        id=config.clock.new_id(),
        question_id=question.id or "",
        activation_id=activation.id,
        node_id=question.node or activation.node,
        kind=WaitKind.INTERRUPT,
        status=WaitStatus.OPEN,
        lineage=position.lineage,
        sequence=position.sequence + 1,
        position=place,
        key=question.key,
        payload=question.payload,
        schema=question.schema,
        default=question.default,
        due_in_seconds=expires.total_seconds() if expires is not None else None,
        namespace=position.run.namespace,
    )


def _timer(
    timer: Timer, activation: Activation, position: Position, config: RunConfig
) -> WaitRecord:
    until = timer.until
    return WaitRecord(
        id=config.clock.new_id(),
        activation_id=activation.id,
        node_id=activation.node,
        kind=WaitKind.TIMER,
        status=WaitStatus.OPEN,
        lineage=position.lineage,
        sequence=position.sequence + 1,
        due_at=None if isinstance(until, timedelta) else until,
        due_in_seconds=until.total_seconds() if isinstance(until, timedelta) else None,
        namespace=position.run.namespace,
    )
