"""Taking a thread's child runs along when it is forked, or goes on from before.

A fork of a thread that paused inside a child would otherwise begin the child anew and
ask again, and so would a branch. Each child run of a pending activation is copied with
the checkpoint at which it stood, what it asked and what it kept, and so are its own
children. `child_records.py` finds them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import CheckpointSource
from stateknot.kernel.writes import Admission, CheckpointDraft, ThreadFork
from stateknot.runtime.branching import carry_over
from stateknot.runtime.child_records import INPUT, children_at, input_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import CheckpointRecord, Namespace, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.child_records import StandingChild


def fork_children(
    store: Store,
    record: CheckpointRecord,
    forked: RunRecord,
    new_id: Callable[[], str],
) -> None:
    """Copy the child runs of `record`'s pending activations below `forked`.

    `forked` may be the run itself, where it goes on from `record` in a new lineage.
    Transaction: the caller's.
    """
    for child in children_at(store, record):
        _fork_child(store, child, forked, new_id)


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


def _segment(child: StandingChild, lineage: int) -> str:
    """The namespace segment of a call in the fork's lineage. See `children.py`."""
    name = child.activation_id
    if lineage != 0:
        name = f"{name}@{lineage}"
    return f"{name}#{child.call}" if child.call else name


def _fork_child(
    store: Store,
    standing: StandingChild,
    parent: RunRecord,
    new_id: Callable[[], str],
) -> None:
    child = standing.run
    record = store.find_checkpoint(
        child.thread_id, standing.checkpoint_id, child.namespace
    )
    if record is None:
        return
    namespace: Namespace = (*parent.namespace, _segment(standing, parent.lineage))
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
    began = {INPUT: dict(input_values(store, child))}
    draft = replace(draft, metadata={**draft.metadata, **began})
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
        metadata={INPUT: draft.id},
        events=(Event(kind="thread.forked", data={"from": record.id}),),
    )
    forked = store.fork(
        ThreadFork(
            admission=admission,
            checkpoint=draft,
            waits=tuple(replace(wait, namespace=namespace) for wait in branch.waits),
            attempts=tuple(replace(a, namespace=namespace) for a in branch.attempts),
        )
    )
    fork_children(store, record, forked, new_id)
