"""What a reader sees of a thread, in a form that both stores share.

Ids differ between stores, so checkpoints are known by their place in the history.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from stateknot import RunStatus


def thread_of(graph: Any, thread_id: str, history: list[Any]) -> dict[str, Any]:
    """Status, steps and history of a thread; empty where there is none."""
    run = graph.config.checkpointer.find_thread_run(thread_id)
    if run is None:
        return {}
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


def check_lineage(graph: Any, thread_id: str, history: list[Any]) -> None:
    """One head, an unbroken chain to a root, steps that rise along it."""
    store = graph.config.checkpointer
    run = store.find_thread_run(thread_id)
    head = graph.get_state(thread_id)
    assert head.config["checkpoint_id"] == run.head_id
    assert history[0] == head
    parents = [snapshot.parent_config for snapshot in history]
    assert parents == [*(snapshot.config for snapshot in history[1:]), None]
    for newer, older in pairwise(history):
        is_first = newer.metadata["source"] == "input"
        assert is_first or newer.metadata["step"] == older.metadata["step"] + 1
    ids = {snapshot.metadata["run_id"] for snapshot in history} - {None}
    runs = [store.find_run(run_id) for run_id in ids]
    assert sum(run.status.is_holding for run in runs) <= 1


def family_of(store: Any, thread_id: str) -> list[dict[str, Any]]:
    """The child runs below the thread's newest run; checks that they belong to it."""
    run = store.find_thread_run(thread_id)
    return [] if run is None else children_of(store, run)


def children_of(store: Any, run: Any) -> list[dict[str, Any]]:
    """The child runs of all levels, by namespace, each with its own records."""
    found = []
    for child in store.list_children(run.id):
        records = store.list_checkpoints(child.thread_id, namespace=child.namespace)
        check_child(run, child, records)
        found.append(
            {
                "namespace": child.namespace,
                "graph": child.graph_id,
                "status": str(child.status),
                "steps": child.steps,
                "error": (child.error or {}).get("message"),
                "history": [record_of(record) for record in records],
            }
        )
        found += children_of(store, child)
    return sorted(found, key=lambda seen: str(seen["namespace"]))


def record_of(record: Any) -> dict[str, Any]:
    """A stored checkpoint without what differs between stores."""
    return {
        "values": dict(record.values),
        "next": record.next_nodes,
        "source": str(record.source),
        "step": record.step,
        "failed_node": record.metadata.get("failed_node"),
    }


def check_child(parent: Any, child: Any, records: list[Any]) -> None:
    """A child belongs to its parent, and its records are an unbroken chain."""
    assert child.thread_id == parent.thread_id
    assert child.root_run_id == parent.root_run_id
    assert child.namespace[:-1] == parent.namespace
    assert records[0].id == child.head_id
    assert [r.parent_id for r in records] == [*(r.id for r in records[1:]), None]
    assert records[0].pending or child.status is not RunStatus.FAILED
    assert not records[0].pending or child.status is not RunStatus.COMPLETED
