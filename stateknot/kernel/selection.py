"""Collecting the next active list, and what the joins hold back of it.

`Selection` is filled target by target in active order and then finished; it is mutable
and private to one call of `plan_routes`. See Note [Joins].

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

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.kernel.commands import Send
from stateknot.kernel.records import Activation, Event, JoinState
from stateknot.kernel.vocabulary import END

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.outcome import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    """The next activations in active order, the joins behind them, and the events."""

    successors: tuple[Activation, ...]
    joins: JoinState
    events: tuple[Event, ...] = ()


def target_node(target: Target) -> str:
    """The node that a target names."""
    return target.node if isinstance(target, Send) else target


@dataclass(slots=True)
class _Slot:
    """A place in the next active list: an activation, or a join that may fire there."""

    node: str
    arg: Any = None
    is_join: bool = False
    is_plain: bool = True


@dataclass(slots=True)
class Selection:
    """Collects the next active list; mutable, and private to one call."""

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
        """Take up the joins so far, but for those that the graph no longer has."""
        known, joins = self.blueprint.waiting, self.joins
        self.arrivals = {
            k: dict.fromkeys(v) for k, v in joins.arrivals.items() if k in known
        }
        self.withheld = {k: list(v) for k, v in joins.withheld.items() if k in known}

    def add(self, source: str, target: Target) -> None:
        """Take one target of `source`."""
        node = target_node(target)
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
        """The joins that fire, in canonical order.

        A join that fires is pending itself, so it holds back the joins behind it: those
        in front are decided first, and in a ring of joins the canonical order decides.
        """
        undecided = {}
        for join in sorted(self.arrivals):
            required = self.blueprint.waiting[join]
            needed = {node for node in required if node != join}
            if self.arrivals[join].keys() >= set(required) and busy.isdisjoint(needed):
                undecided[join] = needed
        firing: list[str] = []
        while undecided:
            join = _first_free(undecided)
            if undecided.pop(join).isdisjoint(firing):
                firing.append(join)
        return sorted(firing)

    def _fired(self, join: str) -> list[Activation]:
        args = self.withheld.get(join)
        if not args:
            return [Activation(node=join)]
        return [Activation(node=join, arg=arg) for arg in args]


def _first_free(undecided: Mapping[str, set[str]]) -> str:
    """The first join that waits for no other of them, else the first."""
    free = (j for j, needed in undecided.items() if needed.isdisjoint(undecided))
    return next(free, next(iter(undecided)))


def _activation(slot: _Slot) -> Activation:
    if slot.is_plain:
        return Activation(node=slot.node)
    return Activation(node=slot.node, arg=slot.arg)
