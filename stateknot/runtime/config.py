"""How a compiled graph is run: everything that is not part of its definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stateknot.errors import SubAgentDepthError
from stateknot.kernel.limits import MAXIMUM_DEPTH, MAXIMUM_TOTAL_STEPS
from stateknot.kernel.records import Event, Namespace, RunRecord
from stateknot.kernel.retry import RetryPolicy
from stateknot.kernel.store import Store
from stateknot.kernel.vocabulary import DurabilityMode
from stateknot.runtime.clock import Clock, SystemClock

EventSink = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RecursionPolicy:
    """Bounds on graphs that run graphs and on runs that go on and on.

    `max_depth` counts levels, the top-level run included; `max_total_steps` and
    `max_visits_per_node` count over the whole run, resumes included.
    """

    max_depth: int = MAXIMUM_DEPTH
    max_visits_per_node: int | None = None
    max_total_steps: int = MAXIMUM_TOTAL_STEPS

    def require_depth(self, frames: Sequence[RecursionFrame]) -> None:
        """Refuse a run inside `frames` that would be one level too deep.

        Raises SubAgentDepthError.
        """
        if len(frames) + 1 > self.max_depth:
            raise SubAgentDepthError(self.max_depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursionFrame:
    """One level of a run tree, as seen from a run further in."""

    graph_id: str
    run_id: str
    node: str | None = None
    namespace: Namespace = ()
    depth: int = 0
    parent_run_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The form that stands in a checkpoint's metadata."""
        return {
            "graph_id": self.graph_id,
            "run_id": self.run_id,
            "node": self.node,
            "namespace": list(self.namespace),
            "depth": self.depth,
            "parent_run_id": self.parent_run_id,
        }


def own_frame(run: RunRecord, config: RunConfig) -> RecursionFrame:
    """The frame of a run itself, behind those of the runs around it."""
    return RecursionFrame(
        graph_id=run.graph_id,
        run_id=run.id,
        node=config.hosting_node,
        namespace=run.namespace,
        depth=len(config.frames),
        parent_run_id=run.parent_run_id,
    )


LONGEST_SLEEP_SECONDS = 1.0
"""On a worker a longer wait for a retry is stored, so that it does not hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The run-time choices of a compiled graph; every `with_*` makes a changed copy."""

    checkpointer: Store | None = None
    sinks: tuple[EventSink, ...] = ()
    durability: DurabilityMode = DurabilityMode.SYNC
    retry: RetryPolicy | None = None
    namespace: Namespace = ()
    policy: RecursionPolicy = field(default_factory=RecursionPolicy)
    frames: tuple[RecursionFrame, ...] = ()
    hosting_node: str | None = None
    deadline_seconds: float | None = None
    longest_sleep_seconds: float | None = None
    is_parallel: bool = False
    max_concurrency: int | None = None
    spread: bool = False
    max_running: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    journal: Any = None
    status_store: Any = None
    extras: dict[str, Any] = field(default_factory=dict)
