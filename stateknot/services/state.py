"""Editing and forking threads: state written by hand, under the graph's own rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uuid_utils.compat import uuid7

from stateknot.errors import CheckpointError, RevisionMismatchError
from stateknot.models import Checkpoint, Thread
from stateknot.registry import find_graph
from stateknot.runtime.manual import Editor
from stateknot.services.actors import actor_name
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.runtime.graph import CompiledGraph


def update_state(
    thread_id: str,
    update: Any,
    *,
    as_node: str | None = None,
    expected_checkpoint_id: str | None = None,
    actor: Any = None,
) -> Checkpoint:
    """Write a checkpoint with `update` folded into the thread's newest state.

    Transaction: its own, or the caller's. Raises StateError when the update does not
    fit, StaleCheckpointError when the head is not the one expected, ThreadBusyError
    while the run is being driven, RevisionMismatchError without the graph's code.
    """
    return bulk_update_state(
        thread_id,
        [(update, as_node)],
        expected_checkpoint_id=expected_checkpoint_id,
        actor=actor,
    )


def bulk_update_state(
    thread_id: str,
    updates: Sequence[Any],
    *,
    expected_checkpoint_id: str | None = None,
    actor: Any = None,
) -> Checkpoint:
    """Write several updates (or pairs of update and `as_node`), all or none."""
    if not updates:
        raise CheckpointError("a bulk update needs at least one update")
    store = DjangoCheckpointer()
    with store.atomic():
        graph, _ = _pinned(store, thread_id)
        editor = Editor(blueprint=graph.blueprint, config=graph.config, store=store)
        expected, written = expected_checkpoint_id, ""
        for item in updates:
            update, as_node = item if isinstance(item, tuple) else (item, None)
            record = editor.update(
                thread_id,
                update,
                as_node=as_node,
                expected=expected,
                actor=actor_name(actor),
            )
            expected = written = record.id
    return Checkpoint.objects.using(store.using).get(id=written)


def fork_thread(
    source: str,
    target: str | None = None,
    *,
    checkpoint_id: str | None = None,
    actor: Any = None,
) -> Thread:
    """Begin a new thread with a copy of a checkpoint; it waits to be resumed."""
    store = DjangoCheckpointer()
    target = target or str(uuid7())
    with store.atomic():
        graph, digest = _pinned(store, source)
        editor = Editor(
            blueprint=graph.blueprint, config=replace(graph.config), store=store
        )
        editor.fork(
            source,
            target,
            checkpoint_id=checkpoint_id,
            digest=digest,
            version=graph.version,
            definition=graph.definition.to_dict(),
            actor=actor_name(actor),
        )
    return Thread.objects.using(store.using).get(key=target)


def _pinned(store: DjangoCheckpointer, thread_id: str) -> tuple[CompiledGraph, str]:
    """The graph that the thread's run is pinned to, as this process has it."""
    run = store.find_thread_run(thread_id)
    if run is None:
        raise CheckpointError(f"no checkpoint found on thread {thread_id!r}")
    graph = find_graph(run.graph_id, digest=run.digest)
    if graph is None:
        newest = find_graph(run.graph_id)
        raise RevisionMismatchError(
            run.digest,
            newest.digest if newest else None,
            run.graph_id,
            run.thread_id,
        )
    return graph, run.digest
