"""How far a run may go, and how far one drive of it.

Limits are checked before a superstep starts, so that the last boundary stands when one
is reached. Nothing here writes; read `drive.py` for who asks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stateknot.errors import (
    NodeVisitLimitError,
    RecursionLimitError,
    RunDeadlineError,
    RunError,
)
from stateknot.kernel.routing import with_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.position import Position


@dataclass(slots=True, kw_only=True)
class Quantum:
    """How much one drive may do: supersteps and seconds; None is without bound.

    `is_over` ends it early: it is asked at each boundary.
    """

    supersteps: int | None = None
    seconds: float | None = None
    is_over: Callable[[], bool] | None = None


class Budget:
    """What one drive may spend; it counts from when it was made."""

    def __init__(self, blueprint: Blueprint, config: RunConfig) -> None:
        self.blueprint, self.config = blueprint, config
        self._visits: dict[str, int] = {}
        self._tried: set[str] = set()
        self._started = config.clock.monotonic()
        self._told = 0.0

    def load_visits(self, visits: Mapping[tuple[int, str], str], lineage: int) -> None:
        """Count on from the activations that the run has tried before this drive."""
        self._visits = dict(Counter(visits.values()))
        self._tried = {tried for branch, tried in visits if branch == lineage}

    def exceeded(self, position: Position) -> RunError | None:
        """The first limit that forbids another superstep, checked before it starts."""
        policy = self.config.policy
        limit = position.run.step_limit
        if limit is None:
            limit = min(self.blueprint.recursion_limit, policy.max_total_steps)
        if position.steps >= limit:
            due = dict.fromkeys(activation.node for activation in position.pending)
            return RecursionLimitError(limit, list(due))
        deadline = self.config.deadline_seconds
        if deadline is not None and self._driven(position) >= deadline:
            return RunDeadlineError(deadline)
        return self._visit(position, policy.max_visits_per_node)

    def _driven(self, position: Position) -> float:
        """Seconds that the run was driven for, over all its drives."""
        return position.run.active_seconds + self.elapsed()

    def elapsed(self) -> float:
        """Seconds since this drive began."""
        return self.config.clock.monotonic() - self._started

    def take_active(self) -> float:
        """Seconds since the last call: what the next boundary adds to the run."""
        elapsed = self.elapsed()
        taken, self._told = elapsed - self._told, elapsed
        return taken

    def _visit(self, position: Position, most: int | None) -> RunError | None:
        """Count first runs of activations, under the ids that they will run by."""
        if most is None:
            return None
        for activation in with_ids(position.pending, position.step + 1):
            if activation.id not in self._tried:
                self._tried.add(activation.id)
                self._visits[activation.node] = self._visits.get(activation.node, 0) + 1
            if self._visits[activation.node] > most:
                return NodeVisitLimitError(activation.node, most)
        return None

    def is_used(self, quantum: Quantum | None, supersteps: int) -> bool:
        """Whether a drive that did `supersteps` has used its quantum."""
        if quantum is None:
            return False
        if quantum.is_over is not None and quantum.is_over():
            return True
        elapsed = self.elapsed()
        return (
            quantum.supersteps is not None and supersteps >= quantum.supersteps
        ) or (quantum.seconds is not None and elapsed >= quantum.seconds)
