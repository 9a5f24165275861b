"""Where completed activations lead: the next active list and what joins hold back.

`plan_routes` is a pure function of the blueprint, the folded state, the completed
activations with their outcomes, what stays pending, and the joins so far. Targets are
taken in active order. See Note [Joins].

Note [Joins]
~~~~~~~~~~~~
A join fires when each of its predecessors has arrived at least once and none of their
activations is still pending. All arrivals of a superstep are recorded before any join
is looked at, and a join that fires forgets all of them: otherwise a predecessor that
finishes twice in one pass of a loop would leave an arrival behind, and the next pass
would fire the join too early. A Send to a join is held back with its argument. A join's
place in the active list is that of the last arrival; one that fires without an arrival
in this superstep comes at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.kernel.commands import Send
from stateknot.kernel.limits import MAXIMUM_SENDS
from stateknot.kernel.outcome import label_text
from stateknot.kernel.records import Activation, Event, JoinState
from stateknot.kernel.vocabulary import END, START

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint, Relief
    from stateknot.kernel.outcome import Completed, Target

Done = Sequence[tuple[Activation, "Completed"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    """The next activations in active order, the joins behind them, and the events."""

    successors: tuple[Activation, ...]
    joins: JoinState
    events: tuple[Event, ...] = ()


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
    selection = _Selection(blueprint, joins, step)
    taken: dict[str, set[str]] = {}
    for index, (activation, outcome) in enumerate(done):
        targets = resolve_targets(blueprint, state, index, activation, outcome)
        taken.setdefault(activation.node, set()).update(_node(t) for t in targets)
        for target in targets:
            selection.add(activation.node, target)
        if outcome.goto == ():
            selection.note_empty(activation.node)
    if selection.sends > MAXIMUM_SENDS:
        error = ValueError(
            f"one superstep scheduled {selection.sends:,} Sends, the limit is "
            f"{MAXIMUM_SENDS:,}; fan out in batches"
        )
        raise RouteError(len(done) - 1, "routing", error)
    for relief in blueprint.reliefs:
        if relief.source in taken and not _is_taken(
            blueprint, relief, taken, selection
        ):
            selection.arrive(relief.relief, relief.barrier)
    return selection.finish(remaining)


def resolve_targets(
    blueprint: Blueprint,
    state: BaseModel,
    index: int,
    activation: Activation,
    outcome: Completed,
) -> tuple[Target, ...]:
    """Where one completed activation leads: goto, route, edges or router."""
    node = activation.node
    if outcome.goto:
        return _checked_goto(blueprint, index, outcome.goto)
    if outcome.route is not None:
        return _routed(blueprint, index, node, [outcome.route], "its command")
    router = blueprint.routers.get(node)
    if router is None:
        return blueprint.leads.get(node, ())
    try:
        answer = router.function(blueprint.fold.copy(state))
    except Exception as error:
        place = f"router {router.name!r}"
        raise RouteError(index, "routing", error, place) from error
    labels = answer if isinstance(answer, (list, tuple)) else [answer]
    return _routed(blueprint, index, node, labels, f"router {router.name!r}")


def _checked_goto(
    blueprint: Blueprint, index: int, goto: tuple[Target, ...]
) -> tuple[Target, ...]:
    for target in goto:
        node = _node(target)
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
    blueprint: Blueprint, index: int, node: str, labels: Sequence[Any], who: str
) -> tuple[str, ...]:
    router = blueprint.routers.get(node)
    routes = router.routes if router else {}
    targets = []
    for label in labels:
        text = label_text(label)
        if text not in routes and text != END:
            allowed = ", ".join(map(repr, routes)) or "none"
            error = ValueError(
                f"{who} of node {node!r} chose {text!r}, which is not a route of it; "
                f"allowed: {allowed}"
            )
            raise RouteError(index, "missing_route", error)
        targets.append(routes.get(text, END))
    return tuple(dict.fromkeys(targets))


def _node(target: Target) -> str:
    return target.node if isinstance(target, Send) else target


@dataclass(slots=True)
class _Slot:
    """A place in the next active list: an activation, or a join that may fire there."""

    node: str
    arg: Any = None
    is_join: bool = False
    is_plain: bool = True


@dataclass(slots=True)
class _Selection:
    """Collects the next active list; mutable, and private to one `plan_routes`."""

    blueprint: Blueprint
    joins: JoinState
    step: int
    slots: list[_Slot] = field(default_factory=list)
    plain: set[str] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    sends: int = 0
    arrivals: dict[str, dict[str, None]] = field(default_factory=dict)
    withheld: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrivals = {k: dict.fromkeys(v) for k, v in self.joins.arrivals.items()}
        self.withheld = {k: list(v) for k, v in self.joins.withheld.items()}

    def add(self, source: str, target: Target) -> None:
        """Take one target of `source`."""
        node = _node(target)
        if node == END:
            return
        self.events.append(
            Event(kind="route.selected", step=self.step, node=source, data={"to": node})
        )
        is_send = isinstance(target, Send)
        self.sends += is_send
        if node in self.blueprint.waiting:
            self.arrive(source, node)
            self.slots.append(_Slot(node, is_join=True))
            if isinstance(target, Send):
                self.withheld.setdefault(node, []).append(target.arg)
        elif isinstance(target, Send):
            self.slots.append(_Slot(node, target.arg, is_plain=False))
        elif node not in self.plain:
            self.plain.add(node)
            self.slots.append(_Slot(node))

    def arrive(self, source: str, join: str) -> None:
        """Record that `source` reached `join`."""
        self.arrivals.setdefault(join, {})[source] = None

    def note_empty(self, node: str) -> None:
        """An empty fan-out counts as the arrival of what it would have fanned out to.

        Otherwise a join behind the fan-out would wait for activations that never were.
        """
        for destination in self.blueprint.nodes[node].destinations:
            for join in self.blueprint.leads.get(destination, ()):
                if join in self.blueprint.waiting:
                    self.arrive(destination, join)
                    self.slots.append(_Slot(join, is_join=True))

    def finish(self, remaining: Sequence[Activation]) -> RoutePlan:
        """Fire the joins that are complete and put the list together."""
        busy = {activation.node for activation in remaining}
        busy |= {slot.node for slot in self.slots if not slot.is_join}
        firing = self._firing(busy)
        last = {slot.node: i for i, slot in enumerate(self.slots) if slot.is_join}
        listed: list[Activation] = []
        for index, slot in enumerate(self.slots):
            if not slot.is_join:
                listed.append(_activation(slot))
            elif slot.node in firing and last[slot.node] == index:
                listed.extend(self._fired(slot.node))
        for join in firing:
            if join not in last:
                listed.extend(self._fired(join))
        for join in firing:
            self.arrivals.pop(join, None)
            self.withheld.pop(join, None)
        state = JoinState(
            arrivals={k: tuple(v) for k, v in self.arrivals.items()},
            withheld={k: tuple(v) for k, v in self.withheld.items()},
        )
        return RoutePlan(
            successors=tuple(listed), joins=state, events=tuple(self.events)
        )

    def _firing(self, busy: set[str]) -> list[str]:
        """The joins that fire, in canonical order, until no further one does.

        A join that fires is pending itself, so it holds back the joins behind it.
        """
        firing: list[str] = []
        for join in sorted(self.arrivals):
            required = set(self.blueprint.waiting.get(join, ()))
            arrived = self.arrivals[join]
            if required <= arrived.keys() and not required & (busy - {join}):
                firing.append(join)
                busy = busy | {join}
        return firing

    def _fired(self, join: str) -> list[Activation]:
        args = self.withheld.get(join)
        if not args:
            return [Activation(node=join)]
        return [Activation(node=join, arg=arg) for arg in args]


def _activation(slot: _Slot) -> Activation:
    if slot.is_plain:
        return Activation(node=slot.node)
    return Activation(node=slot.node, arg=slot.arg)


def _is_taken(
    blueprint: Blueprint,
    relief: Relief,
    taken: Mapping[str, set[str]],
    selection: _Selection,
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
        else replace(activation, id=f"{step}:{i}:{activation.node}")
        for i, activation in enumerate(pending)
    )
