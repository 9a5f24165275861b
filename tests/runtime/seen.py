"""What a reader sees of a thread, in a form that both stores share.

Ids differ between stores, so checkpoints are known by their place in the history.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any


def thread_of(graph: Any, thread_id: str) -> dict[str, Any]:
    """Status, steps and history of a thread; empty where there is none."""
    run = graph.config.checkpointer.find_thread_run(thread_id)
    if run is None:
        return {}
    history = graph.get_state_history(thread_id)
    return {
        "status": str(run.status),
        "steps": run.steps,
        "error": (run.error or {}).get("message"),
        "waits": run.wake_at is not None,
        "history": [snapshot_of(snapshot) for snapshot in history],
    }


def snapshot_of(snapshot: Any) -> dict[str, Any]:
    """A checkpoint without what differs between stores."""
    told = snapshot.metadata
    return {
        "values": snapshot.values.model_dump(),
        "next": snapshot.next_nodes,
        "source": told["source"],
        "step": told["step"],
        "failed_node": told["failed_node"],
        "interrupted_nodes": told["interrupted_nodes"],
        "asks": [(q.node, q.key, q.payload) for q in snapshot.pending_interrupts],
    }


def check_lineage(graph: Any, thread_id: str) -> None:
    """One head, an unbroken chain to a root, steps that rise along it."""
    store = graph.config.checkpointer
    run = store.find_thread_run(thread_id)
    history = graph.get_state_history(thread_id)
    head = graph.get_state(thread_id)
    assert head.config["checkpoint_id"] == run.head_id
    assert history[0] == head
    parents = [snapshot.parent_config for snapshot in history]
    assert parents == [*(snapshot.config for snapshot in history[1:]), None]
    for newer, older in pairwise(history):
        is_first = newer.metadata["source"] == "input"
        assert is_first or newer.metadata["step"] == older.metadata["step"] + 1
    holding = [r for r in runs_of(graph, thread_id) if r.status.is_holding]
    assert len(holding) <= 1


def runs_of(graph: Any, thread_id: str) -> list[Any]:
    """Every run that a checkpoint of the history names."""
    store = graph.config.checkpointer
    ids = {s.metadata["run_id"] for s in graph.get_state_history(thread_id)} - {None}
    return [store.find_run(run_id) for run_id in sorted(ids)]
