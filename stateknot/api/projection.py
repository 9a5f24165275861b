"""From rows and snapshots to the shapes that go out, with secret fields masked.

The API and the commands both project here; what is masked is decided in
`selectors/masking.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.api import shapes
from stateknot.errors import NotFoundError, StateError
from stateknot.kernel.profile import decode
from stateknot.kernel.state import MASK
from stateknot.registry import find_graph
from stateknot.selectors import get_state, get_state_history
from stateknot.selectors.access import find_thread
from stateknot.selectors.masking import show_values
from stateknot.selectors.threads import find_codec
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.commands import Interrupt
    from stateknot.kernel.records import Event, JournalRecord
    from stateknot.kernel.state import StateCodec
    from stateknot.models import Checkpoint, Run, Thread, Wait
    from stateknot.runtime.execution import StateSnapshot
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.moving import MovePlan
    from stateknot.selectors.revisions import RevisionDetail, RevisionFacts


def show_graph(graph: CompiledGraph) -> shapes.Graph:
    """A registered revision."""
    return shapes.Graph(
        graph=graph.graph_id,
        name=graph.name,
        version=graph.version,
        digest=graph.digest,
        is_newest=find_graph(graph.graph_id) is graph,
        nodes=list(graph.blueprint.nodes),
    )


def show_revision(facts: RevisionFacts) -> shapes.Revision:
    """A revision, without how many runs it has."""
    return shapes.Revision(
        graph=facts.graph_id,
        version=facts.version,
        digest=facts.digest,
        is_registered=facts.is_registered,
        state=facts.state or None,
    )


def show_revision_detail(found: RevisionDetail) -> shapes.RevisionDetail:
    """A revision with its definition."""
    graph = found.graph
    return shapes.RevisionDetail(
        definition=dict(found.definition),
        topology=None if graph is None else json.loads(graph.to_json()),
        **show_revision(found.facts).model_dump(),
    )


def show_run(run: Run, *, with_traceback: bool = False) -> shapes.Run:
    """A run's row; `run` was read with its thread and revision."""
    error = run.error
    if error is not None and not with_traceback:
        error = {name: fact for name, fact in error.items() if name != "traceback"}
    return shapes.Run(
        id=str(run.id),
        graph=run.graph_id,
        version=run.revision.version,
        digest=run.revision.digest,
        thread_id=run.thread.key,
        status=run.status,
        parent_run_id=str(run.parent_run_id) if run.parent_run_id else None,
        root_run_id=str(run.root_run_id),
        checkpoint_id=str(run.head_id),
        steps=run.steps,
        step_limit=run.step_limit,
        failed_node=run.failed_node or None,
        error=error,
        output=None if run.output is None else decode(run.output),
        metadata=run.metadata,
        actor=run.actor,
        is_queued=run.is_queued,
        cancel_requested_at=run.cancel_requested_at,
        cancel_reason=run.cancel_reason or None,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def show_plan(plan: MovePlan) -> shapes.MovePlan:
    """What a move does."""
    return shapes.MovePlan(
        run_id=plan.run_id,
        thread_id=plan.thread_id,
        from_digest=plan.from_digest,
        to_digest=plan.to_digest,
        renamed=dict(plan.renamed),
        removed=list(plan.removed),
        added=list(plan.added),
        missing=list(plan.missing),
        forgotten_joins=list(plan.forgotten_joins),
        changed_fields=sorted(plan.changes),
        dropped_fields=list(plan.dropped),
        problems=list(plan.problems),
    )


def show_question(question: Interrupt) -> shapes.Question:
    """An open question."""
    schema = question.schema
    return shapes.Question(
        id=str(question.id),
        node=question.node,
        key=question.key,
        payload=question.payload,
        answer_schema=None if schema is None else dict(schema),
    )


def show_asked(wait: Wait) -> shapes.AskedQuestion:
    """A question's row; `wait` was read with its thread and run."""
    return shapes.AskedQuestion(
        id=str(wait.id),
        interrupt_id=wait.question_id or str(wait.id),
        thread_id=wait.thread.key,
        run_id=str(wait.run_id),
        graph=wait.run.graph_id,
        node=wait.node_id,
        key=wait.key,
        payload=decode(wait.payload),
        answer_schema=None if wait.schema is None else decode(wait.schema),
        status=wait.status,
        asked_at=wait.asked_at,
        due_at=wait.due_at,
        answered_at=wait.answered_at,
        answered_by=wait.answered_by or None,
    )


def load_checkpoint(
    thread_id: str, checkpoint_id: str | None = None
) -> shapes.Checkpoint:
    """The newest checkpoint of a thread, or the one named. Raises NotFoundError."""
    snapshot = get_state(thread_id, checkpoint_id)
    if snapshot is None:
        what = f"checkpoint {checkpoint_id} on thread" if checkpoint_id else "thread"
        raise NotFoundError(f"no {what} {thread_id!r}")
    return show_checkpoint(snapshot, find_codec(DjangoCheckpointer(), thread_id))


def load_history(
    thread_id: str, *, limit: int, before: str | None = None
) -> list[shapes.Checkpoint]:
    """The newest checkpoint of a thread and its ancestors, or those behind `before`."""
    found = get_state_history(thread_id, limit=limit, before=before)
    codec = find_codec(DjangoCheckpointer(), thread_id) if found else None
    return [show_checkpoint(snapshot, codec) for snapshot in found]


def show_checkpoint(
    snapshot: StateSnapshot, codec: StateCodec | None
) -> shapes.Checkpoint:
    """A snapshot, masked by the codec of its graph (None: it is not here)."""
    facts, parent = snapshot.metadata, snapshot.parent_config
    return shapes.Checkpoint(
        thread_id=snapshot.config["thread_id"],
        checkpoint_id=snapshot.config["checkpoint_id"],
        parent_checkpoint_id=parent and parent["checkpoint_id"],
        run_id=facts["run_id"],
        step=facts["step"],
        source=facts["source"],
        state=mask_state(snapshot.values, codec),
        state_error=_state_error(facts.get("state_error"), codec),
        next_nodes=snapshot.next_nodes,
        questions=[show_question(q) for q in snapshot.pending_interrupts],
        failed_node=facts["failed_node"],
        error=facts["error"],
        created_at=snapshot.created_at,
    )


def show_thread(run: Run, checkpoint: shapes.Checkpoint) -> shapes.Thread:
    """A thread, by its newest checkpoint and the run that it belongs to."""
    return shapes.Thread(
        graph=run.graph_id,
        run=show_run(run, with_traceback=True),
        **{name: getattr(checkpoint, name) for name in type(checkpoint).model_fields},
    )


def show_thread_item(thread: Thread) -> shapes.ThreadItem:
    """A thread's row; it was read with its current run, and that with its rows."""
    run = thread.current_run
    return shapes.ThreadItem(
        thread_id=thread.key,
        graph=thread.graph_id,
        created_at=thread.created_at,
        run=None if run is None else show_run(run),
    )


def show_edit(thread_id: str, row: Checkpoint) -> shapes.Edited:
    """The checkpoint that an edit wrote."""
    return shapes.Edited(
        thread_id=thread_id,
        checkpoint_id=str(row.id),
        parent_checkpoint_id=str(row.parent_id) if row.parent_id else None,
        step=row.step,
        created_at=row.created_at,
    )


def show_entries(
    entries: Iterable[JournalRecord], user: Any
) -> list[shapes.JournalEntry]:
    """Journal rows, without the names of other threads that `user` may not see."""
    return [_show_entry(entry, user) for entry in entries]


def _show_entry(entry: JournalRecord, user: Any) -> shapes.JournalEntry:
    events = [
        shapes.Event(kind=e.kind, step=e.step, node=e.node, data=_facts(e, user))
        for e in entry.events
    ]
    return shapes.JournalEntry(
        number=entry.number,
        first_event=entry.first_event,
        checkpoint_id=entry.checkpoint_id,
        actor=entry.actor,
        recorded_at=entry.recorded_at,
        events=events,
    )


def _facts(event: Event, user: Any) -> dict[str, Any]:
    facts = dict(event.data)
    if event.kind == "thread.forked":
        try:
            find_thread(user, str(facts["thread"]))
        except NotFoundError:
            return {}
    return facts


def mask_state(values: Any, codec: StateCodec | None) -> dict[str, Any]:
    """The JSON values of a state, secret fields masked."""
    if codec is not None and isinstance(values, BaseModel):
        values = codec.dump(values, codec.names)
    return show_values(values, codec)


def refuse_masks(values: Mapping[str, Any], codec: StateCodec | None) -> None:
    """Refuse a mask given as a secret's value: it was read here and copied back.

    Raises StateError naming the field.
    """
    for name in sorted(codec.secrets if codec else ()):
        if values.get(name) == MASK:
            raise StateError(
                f"{name}: {MASK} is the mask of a secret, not its value; leave the "
                "field out to keep what it is, or give the new secret",
                path=name,
            )


def _state_error(text: str | None, codec: StateCodec | None) -> str | None:
    """Why the state does not fit; without its values where some are secret."""
    if codec is None:
        return "the graph's code is not in this process, so its fields are masked"
    if text and codec.secrets:
        return "the stored state does not fit the graph's model any more"
    return text
