"""Status rows: where each run stands, kept as its events come.

`with_status_store` hands a graph any object with `put`, `get` and `list_by_thread`. It
is told beside the run: a store that fails is cut off, the run goes on.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.telling import SAVED

if TYPE_CHECKING:
    from datetime import datetime

    from stateknot.kernel.records import Event, Namespace, RunRecord
    from stateknot.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatusRow:
    """Where a run stands. A root's `root_run_id` is its own id."""

    run_id: str
    graph_id: str
    root_run_id: str = ""
    parent_run_id: str | None = None
    thread_id: str | None = None
    checkpoint_id: str | None = None
    namespace: Namespace = ()
    status: RunStatus = RunStatus.PENDING
    current_step: int = 0
    active_nodes: tuple[str, ...] = ()
    pending_interrupts: tuple[str, ...] = ()
    started_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        """Let a run without a root be its own."""
        if not self.root_run_id:
            object.__setattr__(self, "root_run_id", self.run_id)

    @property
    def is_terminal(self) -> bool:
        """Whether it ended; a paused run did not."""
        return self.status.is_terminal

    @classmethod
    def of(cls, run: RunRecord) -> RunStatusRow:
        """The row of a run that nothing was told of yet."""
        return cls(
            run_id=run.id,
            graph_id=run.graph_id,
            root_run_id=run.root_run_id,
            parent_run_id=run.parent_run_id,
            thread_id=run.thread_id,
            namespace=run.namespace,
            checkpoint_id=run.head_id,
        )


class StatusStore(Protocol):
    """Keeps one row per run."""

    def put(self, row: RunStatusRow) -> None:
        """Keep `row` in place of the run's last one."""
        ...

    def get(self, run_id: str) -> RunStatusRow | None:
        """The run's row, or None."""
        ...

    def list_by_thread(self, thread_id: str) -> list[RunStatusRow]:
        """The rows of a thread's runs, oldest first."""
        ...


class MemoryStatusStore:
    """Keeps at most `max_runs` rows in this process.

    A new run beyond them evicts the oldest that ended, else the oldest; a row that is
    replaced evicts nothing. With 0 nothing is kept.
    """

    def __init__(self, max_runs: int = 10_000) -> None:
        self.max_runs = max_runs
        self._rows: dict[str, RunStatusRow] = {}
        self._lock = threading.Lock()

    def put(self, row: RunStatusRow) -> None:
        """See the protocol."""
        if self.max_runs <= 0:
            return
        with self._lock:
            if row.run_id not in self._rows and len(self._rows) >= self.max_runs:
                self._evict()
            self._rows[row.run_id] = row

    def _evict(self) -> None:
        ended = (run_id for run_id, row in self._rows.items() if row.is_terminal)
        del self._rows[next(ended, next(iter(self._rows)))]

    def get(self, run_id: str) -> RunStatusRow | None:
        """See the protocol."""
        with self._lock:
            return self._rows.get(run_id)

    def list_by_thread(self, thread_id: str) -> list[RunStatusRow]:
        """See the protocol."""
        with self._lock:
            return [row for row in self._rows.values() if row.thread_id == thread_id]


class StatusTeller:
    """Keeps a drive's run up to date in a status store; a sink."""

    def __init__(self, store: StatusStore, run: RunRecord, clock: Clock) -> None:
        self._store, self._clock = store, clock
        known = store.get(run.id)
        self._row = known or RunStatusRow.of(run)

    def __call__(self, event: Event) -> None:
        """Take an event; raises what the store raises, and is then cut off."""
        changes = _changes(event, self._row)
        if changes is not None:
            self._put(changes)

    def rest(self, status: RunStatus, questions: tuple[str, ...]) -> None:
        """Say how a drive came to rest, and which questions are open."""
        self._put(
            {"status": status, "pending_interrupts": questions, "active_nodes": ()}
        )

    def _put(self, changes: dict[str, Any]) -> None:
        now = self._clock.now()
        row = replace(self._row, **changes, updated_at=now)
        if row.started_at is None:
            row = replace(row, started_at=now)
        ended = (row.ended_at or now) if row.is_terminal else None
        self._row = replace(row, ended_at=ended)
        self._store.put(self._row)


def _changes(event: Event, row: RunStatusRow) -> dict[str, Any] | None:
    """What an event changes in a row; None if nothing."""
    data = event.data
    match event.kind:
        case "run.started":
            return {"status": RunStatus.RUNNING, "error": None}
        case "step.started":
            active = tuple(data.get("active", ()))
            step = row.current_step if event.step is None else event.step
            return {"current_step": step, "active_nodes": active}
        case "step.completed":
            return {"active_nodes": ()}
        case "run.completed":
            steps = data.get("steps", row.current_step)
            return {"status": RunStatus.COMPLETED, "current_step": steps}
        case "run.failed":
            return {"status": RunStatus.FAILED, "error": data.get("error")}
        case _ if event.kind in (SAVED, "checkpoint.restored"):
            return {"checkpoint_id": data.get("checkpoint")}
    return None
