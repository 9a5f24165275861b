"""Runs driven as a worker drives them, over either store, without a cluster.

`admit` stores a run that nobody drives yet, `drive` is one pass over it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from stateknot import MemoryCheckpointer
from stateknot.registry import register
from stateknot.runtime.admission import draft_admission
from stateknot.runtime.worker import Driven, drive_run

if TYPE_CHECKING:
    from stateknot import CompiledGraph
    from stateknot.kernel.records import AttemptRecord, RunRecord
    from stateknot.runtime.budget import Quantum


def admit(graph: CompiledGraph, state: Any = None, thread_id: str = "t") -> RunRecord:
    """Register `graph` and store a run of it that is due."""
    register(graph)
    store: Any = graph.config.checkpointer
    admission = draft_admission(
        graph.blueprint,
        graph.definition,
        graph.config,
        state or {},
        thread_id=thread_id,
    )
    with store.atomic():
        run: RunRecord = store.admit(admission)
    return run


def drive(store: Any, quantum: Quantum | None = None, thread_id: str = "t") -> Driven:
    """Make one worker's pass over the thread's run, if it is due."""
    return drive_run(store, store.find_thread_run(thread_id).id, quantum)


def make_due(store: Any, thread_id: str = "t") -> None:
    """Let the time for which the thread's run waits have passed."""
    hours = timedelta(hours=2)
    if isinstance(store, MemoryCheckpointer):
        clock = store.now
        store.now = lambda: clock() + hours
        return
    from django.db.models import F

    from stateknot.models import Run, Wait

    Run.objects.filter(thread__key=thread_id).update(wake_at=F("wake_at") - hours)
    Wait.objects.filter(thread__key=thread_id).update(due_at=F("due_at") - hours)


def attempts_of(store: Any, thread_id: str = "t") -> list[AttemptRecord]:
    """Every attempt of the thread's run, in the order in which they began."""
    found = store.list_attempts(store.find_thread_run(thread_id).id)
    return sorted(found, key=lambda attempt: attempt.id)


def tried(store: Any, thread_id: str = "t") -> list[tuple[str, int, str]]:
    """Node, number and status of each attempt."""
    return [
        (attempt.node_id, attempt.number, str(attempt.status))
        for attempt in attempts_of(store, thread_id)
    ]
