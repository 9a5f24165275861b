"""The values that the engine asks a store to write: each is one transaction.

All frozen. What a store gives back stands in `records.py`. Read `store.py` next for the
port that takes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import JoinState
from stateknot.kernel.vocabulary import CheckpointSource, JsonValue, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.records import (
        Activation,
        AttemptRecord,
        Event,
        Namespace,
        WaitRecord,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDraft:
    """A checkpoint about to be written.

    `sequence` orders it in its thread and namespace; `lineage` is the sequence of the
    record at which its branch began, which holds the whole state (`is_base`).
    """

    id: str
    sequence: int
    lineage: int
    parent_id: str | None
    step: int
    source: CheckpointSource
    delta: StateDelta
    pending: tuple[Activation, ...]
    completed: tuple[Activation, ...] = ()
    joins: JoinState = field(default_factory=JoinState)
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    namespace: Namespace = ()

    @property
    def is_base(self) -> bool:
        """Whether it begins a lineage and so holds every field."""
        return self.sequence == self.lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """All that one boundary commits: a checkpoint and what belongs to it.

    `status` is the run's status behind it. `folded_attempts` name earlier pending
    results that this checkpoint folds, `closed_waits` the questions it is done with,
    `delivered_waits` those whose answer an activation got that is still pending.
    `active_seconds` is what the run was driven for since the boundary before. Behind
    status `waiting` the run is due once the last of its open timers is. `ends_spread`
    where its activations ran on several workers: their leases are over.
    """

    checkpoint: CheckpointDraft
    status: RunStatus
    steps: int
    attempts: tuple[AttemptRecord, ...] = ()
    folded_attempts: tuple[str, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    closed_waits: tuple[str, ...] = ()
    delivered_waits: tuple[str, ...] = ()
    active_seconds: float = 0.0
    events: tuple[Event, ...] = ()
    error: Mapping[str, JsonValue] | None = None
    output: JsonValue | None = None
    ends_spread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """All that admitting a run commits: the run and its input record."""

    run_id: str
    thread_id: str
    graph_id: str
    graph_version: str
    digest: str
    definition: Mapping[str, JsonValue]
    checkpoint_id: str
    delta: StateDelta
    pending: tuple[Activation, ...]
    step_limit: int | None = None
    actor: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    namespace: Namespace = ()
    parent_run_id: str | None = None
    root_run_id: str = ""
    priority: int = 0
    source_map: Mapping[str, JsonValue] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A superstep put off: what was finished of it, and how long to wait."""

    delay_seconds: float
    attempts: tuple[AttemptRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    events: tuple[Event, ...] = ()
    active_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A request to end a run as cancelled, and everything it began with it."""

    run_id: str
    reason: str = ""
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopening:
    """What makes a run that stands still ready to be driven again.

    `expected_head` is where it stood when this was decided. `head_id` and `lineage` are
    given when it goes on from another checkpoint than its head; `waits` and `attempts`
    are what that checkpoint carries along. With `fires_timers` it no longer waits for
    its open timers; `dropped_attempts` are pending results that are not used again.
    """

    run_id: str
    expected_head: str | None = None
    head_id: str | None = None
    lineage: int | None = None
    step_limit: int | None = None
    fires_timers: bool = False
    dropped_attempts: tuple[str, ...] = ()
    actor: str = ""
    waits: tuple[WaitRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualWrite:
    """An operator's or application's edit: a checkpoint on top of `expected_head`.

    `closed_waits` and `dropped_attempts` belong to the node it was made as.
    """

    run_id: str
    expected_head: str
    checkpoint: CheckpointDraft
    closed_waits: tuple[str, ...] = ()
    dropped_attempts: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What pins a run that stands still to another revision of its graph.

    `checkpoint` is there when names or fields differ; the head is the one expected.
    """

    run_id: str
    expected_head: str
    digest: str
    graph_version: str
    definition: Mapping[str, JsonValue]
    source_map: Mapping[str, JsonValue] = field(default_factory=dict)
    checkpoint: CheckpointDraft | None = None
    events: tuple[Event, ...] = ()
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFork:
    """A new thread that begins with a copy of another's checkpoint."""

    admission: Admission
    checkpoint: CheckpointDraft
    waits: tuple[WaitRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
