"""Where completed activations lead: the next active list and what joins hold back.

`plan_routes` is a pure function of the blueprint, the folded state, the completed
activations with their outcomes, what stays pending, and the joins so far. Targets are
taken in active order. Read `selection.py` next; see Note [Joins].

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stateknot.kernel.limits import MAXIMUM_SENDS
from stateknot.kernel.outcome import label_text
from stateknot.kernel.records import Activation, JoinState
from stateknot.kernel.selection import RoutePlan, Selection, target_node
from stateknot.kernel.vocabulary import END, START, UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint, Relief
    from stateknot.kernel.outcome import Completed, Target

Done = Sequence[tuple[Activation, "Completed"]]


class RouteError(Exception):
    """Carries whose routing failed and how; never leaves the kernel.

    `place` is the author's code that raised, where the message does not say so itself.
    """

    def __init__(
        self, index: int, kind: str, cause: Exception, place: str = ""
    ) -> None:
        super().__init__(str(cause))
        self.index, self.kind, self.cause, self.place = index, kind, cause, place


def plan_routes(
    blueprint: Blueprint,
    state: BaseModel,
    done: Done,
    *,
    remaining: Sequence[Activation] = (),
    joins: JoinState,
    step: int,
) -> RoutePlan:
    """The successors of `done`, given that `remaining` stays pending.

    Raises RouteError with the position in `done` whose routing failed.
    """
    selection = Selection(blueprint, joins, step)
    taken: dict[str, set[str]] = {}
    for index, (activation, outcome) in enumerate(done):
        targets = resolve_targets(blueprint, state, index, activation, outcome)
        taken.setdefault(activation.node, set()).update(target_node(t) for t in targets)
        for target in targets:
            selection.add(activation.node, target)
        if outcome.goto == ():
            selection.note_empty(activation.node)
        if selection.sends > MAXIMUM_SENDS:
            error = ValueError(
                f"one superstep scheduled {selection.sends:,} Sends, the limit is "
                f"{MAXIMUM_SENDS:,}; fan out in batches"
            )
            raise RouteError(index, "routing", error)
    for relief in blueprint.reliefs:
        if relief.source in taken and not _is_taken(
            blueprint, relief, taken, selection
        ):
            selection.arrive(relief.relief, relief.barrier)
    routes = selection.finish(remaining)
    ready = sum(activation.is_plain for activation in routes.successors)
    if ready > blueprint.maximum_parallelism:
        # Of the last one: with a smaller fold the first that is too much decides.
        raise RouteError(len(done) - 1, "parallelism", _too_wide(blueprint, ready))
    return routes


def _too_wide(blueprint: Blueprint, ready: int) -> ValueError:
    return ValueError(
        f"{ready} nodes would be due in one superstep, graph {blueprint.graph_id!r} "
        f"admits {blueprint.maximum_parallelism} (maximum_parallelism)"
    )


def resolve_targets(
    blueprint: Blueprint,
    state: BaseModel,
    index: int,
    activation: Activation,
    outcome: Completed,
) -> tuple[Target, ...]:
    """Where one completed activation leads: goto, route, edges or router."""
    node = activation.node
    if blueprint.definition is not None and outcome.output is not UNSET:
        return _ended(blueprint, index, node)
    if outcome.goto:
        return _checked_goto(blueprint, index, outcome.goto)
    if outcome.route is not None:
        return _routed(blueprint, index, node, [outcome.route], "its command")
    if outcome.is_waiting and node in blueprint.wait_to:
        return blueprint.wait_to[node]
    router = blueprint.routers.get(node)
    if router is None:
        return _unrouted(blueprint, index, node)
    try:
        answer = router.function(blueprint.fold.copy(state))
        answers = answer if isinstance(answer, (list, tuple)) else [answer]
        labels = [label_text(item) for item in answers]
    except Exception as error:
        place = f"router {router.name!r}"
        raise RouteError(index, "routing", error, place) from error
    return _routed(blueprint, index, node, labels, f"router {router.name!r}")


def _ended(blueprint: Blueprint, index: int, node: str) -> tuple[str, ...]:
    """An output ends the branch, where the definition says that it may end."""
    if blueprint.is_terminal(node):
        return ()
    error = ValueError(f"node {node!r} gave the terminal output and is not terminal")
    raise RouteError(index, "routing", error)


def _unrouted(blueprint: Blueprint, index: int, node: str) -> tuple[str, ...]:
    """The edges of a node that chose nothing; none where its branch may end."""
    leads = blueprint.leads.get(node, ())
    choices, waits = blueprint.choices.get(node), node in blueprint.wait_to
    if leads or blueprint.is_terminal(node) or not (choices or waits):
        return leads
    allowed = ", ".join(map(repr, choices or ())) or "none, but it may wait"
    error = ValueError(
        f"node {node!r} must choose a route with Command(route=...); allowed: {allowed}"
    )
    raise RouteError(index, "missing_route", error)


def _checked_goto(
    blueprint: Blueprint, index: int, goto: tuple[Target, ...]
) -> tuple[Target, ...]:
    for target in goto:
        node = target_node(target)
        if node == START:
            error = ValueError(f"goto may not name START ({START!r})")
            raise RouteError(index, "invalid_target", error)
        if node != END and node not in blueprint.nodes:
            known = ", ".join(sorted(blueprint.nodes))
            error = ValueError(
                f"goto names unknown node {node!r}; the graph has {known}"
            )
            raise RouteError(index, "unknown_target", error)
    return goto


def _routed(
    blueprint: Blueprint, index: int, node: str, labels: Sequence[str], who: str
) -> tuple[str, ...]:
    routes = blueprint.routes_of(node)
    targets: list[str] = []
    for text in labels:
        if text not in routes and (text != END or node not in blueprint.routers):
            kind = "missing_route" if node in blueprint.routers else "undeclared_route"
            allowed = ", ".join(map(repr, routes)) or "none"
            error = ValueError(
                f"{who} of node {node!r} chose {text!r}, which is not a route of it; "
                f"allowed: {allowed}"
            )
            raise RouteError(index, kind, error)
        targets.extend(routes.get(text, (END,)))
    return tuple(dict.fromkeys(targets))


def _is_taken(
    blueprint: Blueprint,
    relief: Relief,
    taken: Mapping[str, set[str]],
    selection: Selection,
) -> bool:
    """Whether the branch that `relief` stands for was taken, directly or further on."""
    if relief.barrier not in blueprint.waiting or relief.relief in selection.plain:
        return True
    return any(
        target == relief.relief or _leads_to(blueprint, target, relief)
        for target in taken[relief.source]
    )


def _leads_to(blueprint: Blueprint, start: str, relief: Relief) -> bool:
    """Whether plain edges lead from `start` to the relief, short of the barrier."""
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        node = ahead.pop()
        if node == relief.relief:
            return True
        if node in seen or (node == relief.barrier and node != start):
            continue
        seen.add(node)
        ahead.extend(t for t in blueprint.edges.get(node, ()) if t != END)
    return False


def with_ids(pending: Sequence[Activation], step: int) -> tuple[Activation, ...]:
    """`pending` with an id for each activation that has none: `step:index:node`."""
    return tuple(
        activation
        if activation.id
        else Activation(
            node=activation.node,
            arg=activation.arg,
            id=f"{step}:{i}:{activation.node}",
            after=activation.after,
        )
        for i, activation in enumerate(pending)
    )
