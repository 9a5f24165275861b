"""A run driven by hand: what an executor asks of a store, without graph or nodes.

`HandDriver` admits a run under a fence and commits boundaries one on top of the other,
as `Drive` does. `everything` reads all that a store knows of a run, to compare before
and after. Read `test_contract_runs.py` next.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from uuid_utils.compat import uuid7

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import Activation, AttemptRecord, Event, Fence, WaitRecord
from stateknot.kernel.vocabulary import (
    AttemptStatus,
    CheckpointSource,
    RunStatus,
    WaitKind,
    WaitStatus,
)
from stateknot.kernel.writes import (
    Admission,
    Boundary,
    CheckpointDraft,
    ManualWrite,
    Reopening,
)

if TYPE_CHECKING:
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store

HOLDER = "worker-1"
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def new_id() -> str:
    return str(uuid7())


def pending(*nodes: str) -> tuple[Activation, ...]:
    """Activations that have run before, so that they have ids."""
    return tuple(Activation(node=n, id=f"1:{i}:{n}") for i, n in enumerate(nodes))


def admission(thread_id: str = "t", values: Any = None, **changes: Any) -> Admission:
    """What admitting a run of one node takes."""
    fields: dict[str, Any] = {
        "run_id": new_id(),
        "thread_id": thread_id,
        "graph_id": "tests.contract",
        "graph_version": "1.0.0",
        "digest": "sha256:" + "a" * 64,
        "definition": {"graph": "tests.contract"},
        "checkpoint_id": new_id(),
        "delta": StateDelta(changes={"log": [], "mark": ""} | (values or {})),
        "pending": (Activation(node="a"),),
        "events": (Event(kind="run.admitted"),),
    }
    return Admission(**(fields | changes))


def attempt(activation_id: str, sequence: int, **changes: Any) -> AttemptRecord:
    """A finished attempt of lineage 0, without a result."""
    fields: dict[str, Any] = {
        "id": new_id(),
        "activation_id": activation_id,
        "node_id": activation_id.split(":")[-1],
        "number": 1,
        "status": AttemptStatus.SUCCEEDED,
        "lineage": 0,
        "sequence": sequence,
        "started_at": NOON,
        "ended_at": NOON,
    }
    return AttemptRecord(**(fields | changes))


def question(activation_id: str, sequence: int, **changes: Any) -> WaitRecord:
    """An open question of lineage 0."""
    fields: dict[str, Any] = {
        "id": new_id(),
        "activation_id": activation_id,
        "node_id": activation_id.split(":")[-1],
        "kind": WaitKind.INTERRUPT,
        "status": WaitStatus.OPEN,
        "lineage": 0,
        "sequence": sequence,
        "payload": {"ask": activation_id},
    }
    return WaitRecord(**(fields | changes))


class HandDriver:
    """Drives one run of `store`; what it committed last is `draft`."""

    def __init__(self, store: Store, thread_id: str = "t", **changes: Any) -> None:
        self.store = store
        request = admission(thread_id, **changes)
        with store.atomic():
            self.run = store.admit(request, HOLDER)
        self.fence = Fence(run_id=self.run.id, epoch=self.run.epoch, holder=HOLDER)
        self.draft = self._input_draft(request)

    def _input_draft(self, request: Admission) -> CheckpointDraft:
        return CheckpointDraft(
            id=self.run.head_id,
            sequence=self.run.sequence,
            lineage=self.run.lineage,
            parent_id=None,
            step=0,
            source=CheckpointSource.INPUT,
            delta=request.delta,
            pending=request.pending,
            namespace=request.namespace,
        )

    def next_draft(self, *, changes: Any = (), appends: Any = (), **fields: Any) -> Any:
        """A draft on top of the last one, in its lineage."""
        draft = replace(
            self.draft,
            id=new_id(),
            sequence=self.draft.sequence + 1,
            parent_id=self.draft.id,
            step=self.draft.step + 1,
            source=CheckpointSource.LOOP,
            delta=StateDelta(changes=dict(changes), appends=dict(appends)),
        )
        return replace(draft, **fields)

    def boundary(self, draft: CheckpointDraft, **fields: Any) -> Boundary:
        """A boundary that goes on, with one attempt and one event."""
        known: dict[str, Any] = {
            "checkpoint": draft,
            "status": RunStatus.RUNNING,
            "steps": draft.step,
            "events": (Event(kind="step.completed", step=draft.step),),
        }
        return Boundary(**(known | fields))

    def commit(
        self, *, changes: Any = (), appends: Any = (), of: Any = None, **fields: Any
    ) -> CheckpointDraft:
        """Commit a boundary; `of` are fields of its draft, the rest the boundary's."""
        draft = self.next_draft(changes=changes, appends=appends, **(of or {}))
        with self.store.atomic():
            self.store.commit(self.fence, self.boundary(draft, **fields))
        self.draft = draft
        return draft

    def claim(self, holder: str = "worker-2") -> Fence | None:
        """Take the run under another holder's name."""
        with self.store.atomic():
            fence = self.store.claim(self.run.id, holder)
        self.fence = fence or self.fence
        return fence

    def claim_again(self) -> None:
        """Make a run at rest pending and take it, as a resume and its worker do."""
        with self.store.atomic():
            self.store.reopen(Reopening(run_id=self.run.id))
        assert self.claim() is not None

    def write(self, *, changes: Any = (), **fields: Any) -> CheckpointDraft:
        """Store a manual checkpoint; `fields` are the change's."""
        draft = self.next_draft(changes=changes, source=CheckpointSource.UPDATE)
        known: dict[str, Any] = {
            "run_id": self.run.id,
            "expected_head": self.draft.id,
            "checkpoint": draft,
            "events": (Event(kind="state.edited"),),
        }
        with self.store.atomic():
            self.store.write(ManualWrite(**(known | fields)))
        self.draft = draft
        return draft

    def record(self) -> RunRecord:
        """The run as the store has it now."""
        run = self.store.find_run(self.run.id)
        assert run is not None
        return run


def everything(store: Any, run_id: str) -> list[Any]:
    """All that `store` knows of a run and its thread."""
    run = store.find_run(run_id)
    return [
        run,
        store.list_checkpoints(run.thread_id, namespace=run.namespace),
        store.list_waits(run.thread_id, run.namespace),
        store.list_attempts(run_id),
        store.list_journal(run_id),
    ]
