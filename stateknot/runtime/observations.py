"""Events with the lineage of the run that told them.

An `Observation` is what journals keep and rollups read: an event, which run of which
tree told it, at which place of its journal, and when. Read `journal.py` for where they
are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stateknot.kernel.records import Event
from stateknot.runtime.telling import SAVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.records import Namespace, RunRecord

_AS_THEY_ARE = (
    "run_id",
    "root_run_id",
    "parent_run_id",
    "thread_id",
    "graph_id",
    "checkpoint_id",
    "step",
    "offset",
)
"""Fields whose JSON is their value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """An event of a run. `offset` counts from 0 and has no gaps; `step` is the event's
    own, else that of the one before; `checkpoint_id` is set where one was saved."""

    run_id: str
    root_run_id: str
    parent_run_id: str | None
    thread_id: str
    graph_id: str
    namespace: Namespace
    offset: int
    at: datetime
    step: int | None
    event: Event
    checkpoint_id: str | None = None

    @property
    def event_id(self) -> str:
        """The id of the event among those of all runs."""
        return f"{self.run_id}-{self.offset}"

    @property
    def timestamp_ms(self) -> int:
        """When it happened, in milliseconds since 1970."""
        return round(self.at.timestamp() * 1000)

    def to_json(self) -> dict[str, Any]:
        """The form that leaves the process."""
        return {
            "event_id": self.event_id,
            "run_id": self.run_id,
            "root_run_id": self.root_run_id,
            "parent_run_id": self.parent_run_id,
            "thread_id": self.thread_id,
            "graph_id": self.graph_id,
            "checkpoint_id": self.checkpoint_id,
            "namespace": list(self.namespace),
            "step": self.step,
            "offset": self.offset,
            "timestamp_ms": self.timestamp_ms,
            "event": self.event.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Observation:
        """Read what `to_json` wrote; the time is exact to the millisecond."""
        return cls(
            **{name: data[name] for name in _AS_THEY_ARE},
            namespace=tuple(data["namespace"]),
            at=datetime.fromtimestamp(data["timestamp_ms"] / 1000, UTC),
            event=Event.from_json(data["event"]),
        )


def observation_of(
    run: RunRecord, event: Event, *, offset: int, at: datetime, last_step: int | None
) -> Observation:
    """The observation of an event that `run` told."""
    saved = event.data.get("checkpoint") if event.kind == SAVED else None
    return Observation(
        run_id=run.id,
        root_run_id=run.root_run_id or run.id,
        parent_run_id=run.parent_run_id,
        thread_id=run.thread_id,
        graph_id=run.graph_id,
        namespace=run.namespace,
        offset=offset,
        at=at,
        step=step_of(event, last_step),
        event=event,
        checkpoint_id=saved,
    )


def step_of(event: Event, last_step: int | None) -> int | None:
    """The step of an event: its own, the number of all for a run's end, else the last
    one seen."""
    if event.step is not None:
        return event.step
    if event.kind == "run.completed":
        steps: int | None = event.data.get("steps")
        return steps
    return last_step
