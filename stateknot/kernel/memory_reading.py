"""The reading half of the memory store.

Nothing here writes; the records handed out are frozen. Read `memory.py` next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.usage import add_up
from stateknot.kernel.vocabulary import AttemptStatus, WaitStatus

if TYPE_CHECKING:
    from stateknot.kernel.memory_rows import MemoryRun
    from stateknot.kernel.memory_threads import MemoryThread
    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        JournalRecord,
        Namespace,
        RunRecord,
        WaitRecord,
    )
    from stateknot.kernel.usage import Usage


class MemoryReader:
    """Reads what `MemoryStore` keeps in dictionaries."""

    def __init__(self) -> None:
        self._threads: dict[str, MemoryThread] = {}
        self._runs: dict[str, MemoryRun] = {}

    def find_checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        namespace: Namespace = (),
    ) -> CheckpointRecord | None:
        """See the port."""
        thread = self._threads.get(thread_id)
        return thread.find(namespace, checkpoint_id) if thread else None

    def list_checkpoints(
        self,
        thread_id: str,
        *,
        namespace: Namespace = (),
        limit: int | None = None,
        before: str | None = None,
    ) -> list[CheckpointRecord]:
        """See the port."""
        thread = self._threads.get(thread_id)
        return thread.walk(namespace, limit, before) if thread else []

    def find_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        run = self._runs.get(run_id)
        return run.record if run else None

    def list_children(self, run_id: str) -> list[RunRecord]:
        """See the port."""
        records = (run.record for run in self._runs.values())
        return [record for record in records if record.parent_run_id == run_id]

    def find_thread_run(
        self, thread_id: str, namespace: Namespace = ()
    ) -> RunRecord | None:
        """See the port."""
        thread = self._threads.get(thread_id)
        run = thread.current.get(namespace) if thread else None
        return run.record if run else None

    def list_waits(self, thread_id: str, namespace: Namespace = ()) -> list[WaitRecord]:
        """See the port."""
        thread = self._threads.get(thread_id)
        return [
            wait
            for wait in (thread.waits.values() if thread else ())
            if wait.status != WaitStatus.CLOSED and wait.namespace == namespace
        ]

    def find_wait(self, wait_id: str) -> WaitRecord | None:
        """See the port."""
        for thread in self._threads.values():
            if wait_id in thread.waits:
                return thread.waits[wait_id]
        return None

    def find_question(self, thread_id: str, question_id: str) -> WaitRecord | None:
        """See the port."""
        thread = self._threads.get(thread_id)
        waits = (
            [w for w in thread.waits.values() if w.public_id == question_id]
            if thread
            else []
        )
        return waits[-1] if waits else None

    def list_waits_at(self, checkpoint: CheckpointRecord) -> list[WaitRecord]:
        """See the port."""
        thread = self._threads[checkpoint.thread_id]
        return [wait for wait in thread.waits.values() if _stood_at(wait, checkpoint)]

    def list_results(self, run: RunRecord) -> list[AttemptRecord]:
        """See the port."""
        attempts = self._runs[run.id].attempts
        return [
            attempt
            for attempt in attempts.values()
            if attempt.result is not None
            and not attempt.folded
            and attempt.lineage == run.lineage
        ]

    def list_results_at(self, checkpoint: CheckpointRecord) -> list[AttemptRecord]:
        """See the port."""
        thread = self._threads[checkpoint.thread_id]
        return [
            attempt
            for run in thread.runs
            for attempt in run.attempts.values()
            if attempt.result is not None and _stood_at(attempt, checkpoint)
        ]

    def list_attempts(self, run_id: str) -> list[AttemptRecord]:
        """Every attempt of a run, in the order in which they were recorded."""
        return list(self._runs[run_id].attempts.values())

    def list_journal(self, run_id: str, after: int = -1) -> list[JournalRecord]:
        """See the port."""
        run = self._runs.get(run_id)
        return [row for row in run.journal if row.number > after] if run else []

    def last_sequence(self, thread_id: str, namespace: Namespace = ()) -> int:
        """See the port."""
        thread = self._threads.get(thread_id)
        return thread.last_sequence(namespace) if thread else -1

    def list_visits(self, run_id: str) -> dict[tuple[int, str], str]:
        """See the port."""
        return self._runs[run_id].list_visits()

    def count_tries(
        self,
        run: RunRecord,
        sequence: int,
        status: AttemptStatus = AttemptStatus.FAILED,
    ) -> dict[str, int]:
        """See the port."""
        return self._runs[run.id].count_tries(run.lineage, sequence, status)

    def measure_usage(self, run_id: str) -> Usage:
        """See the port."""
        attempts = self._runs[run_id].attempts.values()
        return add_up((a.node_id, a.status, a.usage) for a in attempts)


def _stood_at(item: WaitRecord | AttemptRecord, checkpoint: CheckpointRecord) -> bool:
    return (
        item.namespace == checkpoint.namespace
        and item.lineage == checkpoint.lineage
        and item.sequence <= checkpoint.sequence
    )
