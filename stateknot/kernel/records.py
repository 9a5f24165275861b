"""The values that stores keep and the engine passes around.

All frozen. A `CheckpointRecord` is what a reader gets from either store, with its state
put together. What a store is asked to write stands in `writes.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.kernel.vocabulary import (
    UNSET,
    AttemptStatus,
    CheckpointSource,
    JsonValue,
    RunStatus,
    Unset,
    WaitKind,
    WaitStatus,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Namespace = tuple[str, ...]
"""Where a graph stands among graphs that run graphs; the root is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A node due in a superstep. `id` is empty until it first runs.

    `after` names the questions (by public id) that its predecessor completed into: it
    runs once they are answered, and sees the answers.
    """

    node: str
    arg: JsonValue | Unset = UNSET
    id: str = ""
    after: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it carries no Send argument, so that one a superstep is enough."""
        return self.arg is UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The stored form; empty parts are left out."""
        data: dict[str, JsonValue] = {"node": self.node}
        if self.arg is not UNSET:
            data["arg"] = self.arg
        if self.id:
            data["id"] = self.id
        if self.after:
            data["after"] = list(self.after)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Activation:
        """Read what `to_json` wrote."""
        return cls(
            node=data["node"],
            arg=data.get("arg", UNSET),
            id=data.get("id", ""),
            after=tuple(data.get("after", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinState:
    """What has arrived at the joins of a lineage, and the Sends held back by them."""

    arrivals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    withheld: Mapping[str, tuple[JsonValue, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The stored form; empty parts are left out."""
        data: dict[str, JsonValue] = {}
        if self.arrivals:
            data["arrivals"] = {k: list(v) for k, v in sorted(self.arrivals.items())}
        if self.withheld:
            data["withheld"] = {k: list(v) for k, v in sorted(self.withheld.items())}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> JoinState:
        """Read what `to_json` wrote; a record without joins reads as none."""
        return cls(
            arrivals={k: tuple(v) for k, v in data.get("arrivals", {}).items()},
            withheld={k: tuple(v) for k, v in data.get("withheld", {}).items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """A checkpoint as read, with its state put together (`values`, JSON by field)."""

    id: str
    thread_id: str
    run_id: str | None
    namespace: Namespace
    sequence: int
    lineage: int
    parent_id: str | None
    step: int
    source: CheckpointSource
    values: Mapping[str, JsonValue]
    pending: tuple[Activation, ...]
    completed: tuple[str, ...]
    joins: JoinState
    metadata: Mapping[str, JsonValue]
    created_at: datetime
    digest: str = ""

    @property
    def next_nodes(self) -> list[str]:
        """The node of each pending activation, in active order."""
        return [activation.node for activation in self.pending]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One try of an activation; `result` is kept only while no boundary folded it.

    One that `closes` ends the row of its id, whose start was stored before.
    """

    id: str
    activation_id: str
    node_id: str
    number: int
    status: AttemptStatus
    lineage: int
    sequence: int
    started_at: datetime
    ended_at: datetime | None = None
    error: Mapping[str, JsonValue] | None = None
    result: JsonValue | None = None
    usage: Mapping[str, JsonValue] | None = None
    worker: str = ""
    namespace: Namespace = ()
    folded: bool = False
    closes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Attempts that are stored between boundaries, and what was told so far."""

    attempts: tuple[AttemptRecord, ...]
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRecord:
    """A question, a timer, or a value handed to an activation.

    `sequence` is the boundary at which it was asked, `answered_sequence` the newest
    boundary when its answer came.
    """

    id: str
    activation_id: str
    node_id: str
    kind: WaitKind
    status: WaitStatus
    lineage: int
    sequence: int
    position: int = 0
    key: str | None = None
    payload: JsonValue = None
    schema: Mapping[str, JsonValue] | None = None
    default: JsonValue | Unset = UNSET
    due_at: datetime | None = None
    due_in_seconds: float | None = None
    answer: JsonValue | Unset = UNSET
    answered_by: str | None = None
    answered_sequence: int | None = None
    asked_at: datetime | None = None
    namespace: Namespace = ()
    thread_id: str = ""
    run_id: str = ""
    question_id: str = ""

    @property
    def public_id(self) -> str:
        """The id that its author gave it, else its own."""
        return self.question_id or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened; `data` holds the facts of its kind."""

    kind: str
    step: int | None = None
    node: str | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_json(self) -> list[JsonValue]:
        """The stored form: kind, step, node, facts; empty tail left out."""
        row: list[JsonValue] = [self.kind, self.step, self.node, dict(self.data)]
        while len(row) > 1 and row[-1] in (None, {}):
            row.pop()
        return row

    @classmethod
    def from_json(cls, row: list[JsonValue]) -> Event:
        """Read what `to_json` wrote."""
        kind, step, node, data = [*row, None, None, None][:4]
        return cls(kind=kind, step=step, node=node, data=data or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the engine sees it."""

    id: str
    thread_id: str
    graph_id: str
    digest: str
    status: RunStatus
    head_id: str
    sequence: int
    lineage: int
    steps: int
    epoch: int = 0
    namespace: Namespace = ()
    parent_run_id: str | None = None
    root_run_id: str = ""
    step_limit: int | None = None
    active_seconds: float = 0.0
    wake_at: datetime | None = None
    error: Mapping[str, JsonValue] | None = None
    output: JsonValue | None = None
    actor: str = ""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    cancel_requested_at: datetime | None = None
    cancel_reason: str = ""
    is_queued: bool = False
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_to_be_cancelled(self) -> bool:
        """Whether somebody asked to cancel it, ended or not."""
        return self.cancel_requested_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationClaim:
    """The proof that its holder runs one activation of a step that is spread."""

    lease_id: str
    epoch: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The proof that its holder drives a run, while the row's epoch is `epoch`.

    With an `activation` it is the proof for that one alone, and needs both.
    """

    run_id: str
    epoch: int
    holder: str
    activation: ActivationClaim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """How many runs may be driven at once, of one graph and in all; None: any number.

    Children are driven in their parent's slot. A run whose lease ran out has none.
    """

    of_graph: int | None = None
    in_all: int | None = None


NO_LIMIT = Slots()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """One row of the journal: the events of a boundary, or what happened between."""

    run_id: str
    number: int
    first_event: int
    events: tuple[Event, ...]
    recorded_at: datetime
    checkpoint_id: str | None = None
    actor: str = ""
