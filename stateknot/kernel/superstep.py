"""What one superstep decides: the barrier as a pure function.

`plan_superstep` takes the state before the step and the outcome of every activation and
gives a `SuperstepPlan`: which updates are folded, who goes next, what stays pending,
and whether the step advanced, paused or failed. See Note [Lowest index decides].

Note [Lowest index decides]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
The activation with the lowest index that failed, asked, could not be folded or could
not be routed decides the step. Only what stands before it is folded and routed, so the
outcome does not depend on which sibling finished first. Finding that index is a loop,
since a fold error moves it down, and so may routing against the smaller fold; it ends
because the index only falls. Results behind it are kept and reused, not thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.errors import RunError
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.fold import Folded, StateDelta
from stateknot.kernel.outcome import Asked, Completed, Deferred, Failed, Outcome
from stateknot.kernel.reduction import FoldError
from stateknot.kernel.routing import RouteError, plan_routes
from stateknot.kernel.selection import RoutePlan
from stateknot.kernel.vocabulary import UNSET, CheckpointSource

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.records import Activation, Event, JoinState

Outcomes = Sequence[tuple["Activation", Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperstepPlan:
    """The decision of one superstep.

    `done` were folded; `kept` finished behind the deciding activation (or failed to be
    routed) and wait for their fold; `asked` recorded questions; `failure` is that of
    the deciding activation. `pending` is the next active list.
    """

    source: CheckpointSource
    state: BaseModel
    delta: StateDelta
    pending: tuple[Activation, ...]
    joins: JoinState
    done: tuple[tuple[Activation, Completed], ...] = ()
    kept: tuple[tuple[Activation, Completed], ...] = ()
    asked: tuple[tuple[Activation, Asked], ...] = ()
    failure: NodeFailure | None = None
    events: tuple[Event, ...] = field(default_factory=tuple)


def plan_superstep(
    blueprint: Blueprint,
    state: BaseModel,
    outcomes: Outcomes,
    *,
    joins: JoinState,
    step: int,
) -> SuperstepPlan:
    """Decide the superstep numbered `step` that gave `outcomes`, in active order."""
    deciding = _first_undone(outcomes)
    failure: NodeFailure | None = None
    while True:
        done = [(a, o) for a, o in outcomes[:deciding] if isinstance(o, Completed)]
        remaining = [activation for activation, _ in outcomes[deciding:]]
        try:
            _check_output(done, alone=len(outcomes) == 1)
            folded = blueprint.fold.fold(state, [(a.node, o.update) for a, o in done])
            routes = plan_routes(
                blueprint,
                folded.state,
                done,
                remaining=remaining,
                joins=joins,
                step=step,
            )
        except FoldError as error:
            deciding = _update_position(done, error.index)
            kind = "reducer" if error.is_reducer else "update"
            failure = _describe(outcomes[deciding][0], error.cause, kind)
        except RouteError as error:
            deciding = error.index
            failure = _describe(
                outcomes[deciding][0], error.cause, error.kind, error.place
            )
        else:
            return _settle(blueprint, outcomes, deciding, failure, folded, routes)


def find_deferred(outcomes: Outcomes) -> float | None:
    """The delay in seconds if a deferred retry decides the step, else None.

    A failure or a question before it decides instead; those behind it wait with it.
    """
    deciding = _first_undone(outcomes)
    if deciding == len(outcomes) or not isinstance(outcomes[deciding][1], Deferred):
        return None
    return max(o.delay_seconds for _, o in outcomes if isinstance(o, Deferred))


def _first_undone(outcomes: Outcomes) -> int:
    return next(
        (i for i, (_, o) in enumerate(outcomes) if not isinstance(o, Completed)),
        len(outcomes),
    )


def _update_position(done: Sequence[tuple[Activation, Completed]], index: int) -> int:
    """The position in `done` of the `index`-th update that is not None."""
    positions = [i for i, (_, outcome) in enumerate(done) if outcome.update is not None]
    return positions[index]


def _check_output(done: Sequence[tuple[Activation, Completed]], *, alone: bool) -> None:
    """Only an explicit output must be alone in its barrier."""
    for index, (activation, outcome) in enumerate(done):
        if outcome.output is not UNSET and not alone:
            error = ValueError(
                f"node {activation.node!r} gave the terminal output while other nodes "
                "were active in its superstep; join them first"
            )
            raise RouteError(index, "routing", error)


def _describe(
    activation: Activation, cause: Exception, kind: str, place: str = ""
) -> NodeFailure:
    return NodeFailure.of(
        cause,
        node_id=activation.node,
        activation_id=activation.id,
        kind="reducer" if kind == "update" else kind,
        place=place,
        code="node.update_refused" if kind == "update" else None,
    )


def _settle(
    blueprint: Blueprint,
    outcomes: Outcomes,
    deciding: int,
    failure: NodeFailure | None,
    folded: Folded,
    routes: RoutePlan,
) -> SuperstepPlan:
    rest = outcomes[deciding:]
    asked = [(a, o) for a, o in rest if isinstance(o, Asked)]
    kept = [(a, o) for a, o in rest if isinstance(o, Completed)]
    if failure is not None:
        if failure.kind == "reducer":
            # A result that cannot be folded is not kept: the node must run again,
            # unless it must not run twice; then a retry repeats the fold alone.
            refused = outcomes[deciding][0]
            if not blueprint.nodes[refused.node].runs_once:
                kept = [(a, o) for a, o in kept if a is not refused]
    elif rest and isinstance(rest[0][1], Failed):
        failure = rest[0][1].failure
    return SuperstepPlan(
        source=_source(failure, bool(rest)),
        state=folded.state,
        delta=folded.delta,
        pending=routes.successors + tuple(activation for activation, _ in rest),
        joins=routes.joins,
        done=tuple((a, o) for a, o in outcomes[:deciding] if isinstance(o, Completed)),
        kept=tuple(kept),
        asked=tuple(asked),
        failure=failure,
        events=routes.events,
    )


def _source(failure: NodeFailure | None, paused: bool) -> CheckpointSource:
    if failure is not None:
        return CheckpointSource.FAILURE
    return CheckpointSource.INTERRUPT if paused else CheckpointSource.LOOP


def find_unsatisfied_join(
    blueprint: Blueprint, plan: SuperstepPlan
) -> NodeFailure | None:
    """The failure of a run that has nothing to do but a join that cannot fire."""
    if plan.pending or not plan.joins.arrivals:
        return None
    join = min(plan.joins.arrivals)
    arrived = set(plan.joins.arrivals[join])
    missing = sorted(set(blueprint.waiting.get(join, ())) - arrived)
    error = RunError(
        f"join {join!r} can never run: {', '.join(missing)} did not arrive and "
        "nothing else is due. Add a barrier relief for a branch that may be "
        "skipped, or mark the missing node as done"
    )
    return NodeFailure.of(
        error,
        node_id=join,
        activation_id="",
        kind="join",
        code="graph.join_unsatisfied",
        attempts=0,
    )
