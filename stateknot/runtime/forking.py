"""Taking a thread's child runs along when it is forked.

A fork of a thread that paused inside a child would otherwise begin the child anew and
ask again. Each child run of a pending activation is copied with its newest checkpoint,
what it asked and what it kept, and so are its own children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import Admission, CheckpointDraft, Event, ThreadFork
from stateknot.kernel.vocabulary import CheckpointSource
from stateknot.runtime.branching import carry_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import CheckpointRecord, Namespace, RunRecord
    from stateknot.kernel.store import Store


def fork_children(
    store: Store,
    record: CheckpointRecord,
    forked: RunRecord,
    new_id: Callable[[], str],
) -> None:
    """Copy the child runs of `record`'s pending activations below `forked`.

    Transaction: the caller's. Only where `record` is the head of its run: the children
    of an older boundary have gone on since, and begin anew in the fork.
    """
    parent = store.find_run(record.run_id) if record.run_id else None
    if parent is None:
        parent = store.find_thread_run(record.thread_id, record.namespace)
    if parent is None or parent.head_id != record.id:
        return
    pending = {activation.id for activation in record.pending if activation.id}
    for child in store.list_children(parent.id):
        name, _, call = child.namespace[-1].partition("#")
        activation, _, lineage = name.partition("@")
        if activation in pending and int(lineage or 0) == parent.lineage:
            segment = _segment(activation, forked.lineage, call)
            _fork_child(store, child, forked, segment, new_id)


def copied_checkpoint(
    record: CheckpointRecord, *, id: str, sequence: int, namespace: Namespace
) -> CheckpointDraft:
    """The record that begins a fork's lineage: it holds the whole state."""
    return CheckpointDraft(
        id=id,
        sequence=sequence,
        lineage=sequence,
        parent_id=None,
        step=record.step,
        source=CheckpointSource.FORK,
        delta=StateDelta(changes=dict(record.values)),
        pending=record.pending,
        joins=record.joins,
        metadata={**record.metadata, "forked_from": record.id},
        namespace=namespace,
    )


def _segment(activation: str, lineage: int, call: str) -> str:
    """The namespace segment of a call in the fork's lineage. See `children.py`."""
    name = activation if lineage == 0 else f"{activation}@{lineage}"
    return f"{name}#{call}" if call else name


def _fork_child(
    store: Store,
    child: RunRecord,
    parent: RunRecord,
    segment: str,
    new_id: Callable[[], str],
) -> None:
    record = store.find_checkpoint(child.thread_id, child.head_id, child.namespace)
    if record is None:
        return
    namespace: Namespace = (*parent.namespace, segment)
    run_id = new_id()
    sequence = store.last_sequence(parent.thread_id, namespace) + 1
    # The parent's question names the child's by its public id.
    branch = carry_over(
        store,
        record,
        run_id=run_id,
        lineage=sequence,
        standing_at=sequence,
        new_id=new_id,
        keep_public_ids=True,
    )
    draft = copied_checkpoint(
        record, id=new_id(), sequence=sequence, namespace=namespace
    )
    admission = Admission(
        run_id=run_id,
        thread_id=parent.thread_id,
        graph_id=child.graph_id,
        graph_version="",
        digest=child.digest,
        definition={},
        checkpoint_id=draft.id,
        delta=draft.delta,
        pending=record.pending,
        actor=parent.actor,
        namespace=namespace,
        parent_run_id=parent.id,
        root_run_id=parent.root_run_id,
        events=(Event(kind="thread.forked", data={"from": record.id}),),
    )
    forked = store.fork(
        ThreadFork(
            admission=admission,
            checkpoint=draft,
            waits=branch.waits,
            attempts=branch.attempts,
        )
    )
    fork_children(store, record, forked, new_id)
