"""What a caller gets back: executions and snapshots, projected from records.

`snapshot_of` is the one projection from a stored checkpoint to what a reader sees; the
API, the admin and the commands use it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.errors import StateError
from stateknot.kernel.commands import Interrupt
from stateknot.kernel.likeness import copy_value
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from stateknot.kernel.records import CheckpointRecord, RunRecord, WaitRecord
    from stateknot.kernel.state import StateCodec
    from stateknot.runtime.position import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRun:
    """A run that a node of another run made; `checkpoint_id` is where it stood then."""

    node: str
    graph_id: str
    run_id: str
    root_run_id: str
    namespace: tuple[str, ...] = ()
    checkpoint_id: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The form that stands in the metadata of the boundary it belongs to."""
        return {
            "node": self.node,
            "graph_id": self.graph_id,
            "run_id": self.run_id,
            "root_run_id": self.root_run_id,
            "namespace": list(self.namespace),
            "checkpoint_id": self.checkpoint_id,
            "usage": dict(self.usage),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ChildRun:
        """Read what `to_json` wrote."""
        return cls(**{**data, "namespace": tuple(data["namespace"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTree:
    """A run and its direct children; a root has no parent."""

    run_id: str
    root_run_id: str
    parent_run_id: str | None
    children: tuple[ChildRun, ...]

    @property
    def is_root(self) -> bool:
        """Whether nothing ran this run."""
        return self.parent_run_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphExecution:
    """How a call to `run*` or `resume*` ended; `visited`, `steps` are of this call."""

    state: Any
    run_id: str
    graph_id: str
    root_run_id: str
    status: RunStatus
    thread_id: str | None
    checkpoint_id: str | None
    steps: int
    visited: list[str] = field(default_factory=list)
    interrupts: list[Interrupt] = field(default_factory=list)
    child_runs: list[ChildRun] = field(default_factory=list)
    parent_run_id: str | None = None
    output: Any = None

    @property
    def is_interrupted(self) -> bool:
        """Whether questions are open; the deciding one is `interrupts[0]`."""
        return bool(self.interrupts)

    def run_tree(self) -> RunTree:
        """This run and its direct children."""
        return RunTree(
            run_id=self.run_id,
            root_run_id=self.root_run_id,
            parent_run_id=self.parent_run_id,
            children=tuple(self.child_runs),
        )


def execution_of(
    run: RunRecord,
    position: Position | None,
    *,
    status: RunStatus,
    waits: Sequence[WaitRecord] = (),
    **facts: Any,
) -> GraphExecution:
    """How a drive of `run` ended, at `position`; `facts` are the rest of the fields."""
    return GraphExecution(
        state=position.state if position else None,
        run_id=run.id,
        graph_id=run.graph_id,
        root_run_id=run.root_run_id,
        parent_run_id=run.parent_run_id,
        status=status,
        thread_id=run.thread_id,
        checkpoint_id=position.head_id if position else run.head_id,
        interrupts=[interrupt_of(wait) for wait in waits],
        **facts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """A checkpoint as a reader sees it.

    `values` is a model instance, or a dict where the state no longer validates (then
    `metadata["state_error"]` says why).
    """

    values: Any
    next_nodes: list[str]
    config: dict[str, Any]
    metadata: dict[str, Any]
    parent_config: dict[str, Any] | None
    pending_interrupts: list[Interrupt]
    created_at: datetime

    @property
    def tasks(self) -> list[str]:
        """The node ids that are due, the same as `next_nodes`."""
        return list(self.next_nodes)


def interrupt_of(wait: WaitRecord) -> Interrupt:
    """A stored question as the value that asked it."""
    return Interrupt(
        copy_value(wait.payload),
        schema=wait.schema,
        key=wait.key,
        id=wait.public_id,
        default=wait.default,
        node=wait.node_id,
    )


def config_of(
    record: CheckpointRecord, checkpoint_id: str | None = None
) -> dict[str, Any]:
    """The address of a checkpoint: thread, checkpoint and namespace."""
    return {
        "thread_id": record.thread_id,
        "checkpoint_id": checkpoint_id or record.id,
        "namespace": list(record.namespace),
    }


def may_have_questions(records: Sequence[CheckpointRecord]) -> bool:
    """Whether any of them can have open questions: only what is pending asks.

    Spares readers a query for the waits of a thread that came to its end.
    """
    return any(record.pending for record in records)


def open_questions(
    record: CheckpointRecord, waits: Sequence[WaitRecord]
) -> list[WaitRecord]:
    """The open questions of a checkpoint's pending activations, in active order."""
    pending = with_ids(record.pending, record.step + 1)
    places = {activation.id: i for i, activation in enumerate(pending)}
    places |= {name: i for i, a in enumerate(pending) for name in a.after}
    mine = [
        wait
        for wait in waits
        if (wait.activation_id in places or wait.public_id in places)
        and wait.kind == WaitKind.INTERRUPT
        and wait.status == WaitStatus.OPEN
        and wait.sequence <= record.sequence
        and (wait.lineage == record.lineage or wait.sequence == record.sequence)
    ]
    return sorted(mine, key=lambda wait: (_place(wait, places), wait.position))


def _place(wait: WaitRecord, places: dict[str, int]) -> int:
    """The place of the activation that asked, or that waits for the answer."""
    asking = places.get(wait.activation_id)
    return places[wait.public_id] if asking is None else asking


def _root_frame(record: CheckpointRecord) -> dict[str, Any]:
    """The one frame of a run that no other runs; it is not stored."""
    return {"run_id": record.run_id, "node": None, "namespace": [], "depth": 0}


def snapshot_of(
    record: CheckpointRecord, waits: Sequence[WaitRecord], codec: StateCodec | None
) -> StateSnapshot:
    """Project a checkpoint and its open waits.

    Without a codec (its graph is not in this process) the values stay a dict.
    """
    metadata: dict[str, Any] = {
        "source": str(record.source),
        "step": record.step,
        "run_id": record.run_id,
        "failed_node": None,
        "error": None,
        "interrupted_nodes": [],
        "child_runs": [],
        "recursion": [] if record.namespace else [_root_frame(record)],
        **copy_value(dict(record.metadata)),
    }
    values: Any = copy_value(dict(record.values))
    try:
        if codec is not None:
            values = codec.load(record.values)
    except StateError as error:
        metadata["state_error"] = str(error)
    questions = open_questions(record, waits)
    return StateSnapshot(
        values=values,
        next_nodes=record.next_nodes,
        config=config_of(record),
        metadata=metadata,
        parent_config=config_of(record, record.parent_id) if record.parent_id else None,
        pending_interrupts=[interrupt_of(wait) for wait in questions],
        created_at=record.created_at,
    )
