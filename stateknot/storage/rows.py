"""Between rows and records: one projection each way, for both the store and readers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

from stateknot.kernel.profile import decode, encode
from stateknot.kernel.records import (
    Activation,
    AttemptRecord,
    CheckpointRecord,
    JoinState,
    JournalRecord,
    RunRecord,
    WaitRecord,
)
from stateknot.kernel.vocabulary import (
    UNSET,
    AttemptStatus,
    CheckpointSource,
    RunStatus,
    WaitKind,
    WaitStatus,
)
from stateknot.models import Checkpoint, JournalEvent, NodeAttempt, Run, Wait
from stateknot.storage.event_bytes import unpack_events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.records import Namespace
    from stateknot.kernel.vocabulary import JsonValue

SEPARATOR = "/"
_SURROGATES = re.compile("[\ud800-\udfff]")
STANDING_WAITS = [
    WaitStatus.OPEN.value,
    WaitStatus.ANSWERED.value,
    WaitStatus.DELIVERED.value,
]
"""Waits that their activation is not done with."""


def as_uuid(text: str) -> UUID | None:
    """The UUID that `text` writes, or None: an id of another form names no row."""
    try:
        return UUID(text)
    except ValueError:
        return None


def as_key(thread_id: str) -> str:
    """The key to look a thread up by; "" (that of none) for text that no column takes.

    A reader asks with whatever an address held, and PostgreSQL refuses NUL even there.
    """
    is_text = "\x00" not in thread_id and not _SURROGATES.search(thread_id)
    return thread_id if is_text else ""


def join_namespace(namespace: Namespace) -> str:
    """The column form of a namespace; segments are node ids and so hold no slash."""
    return SEPARATOR.join(namespace)


def split_namespace(text: str) -> Namespace:
    """Read what `join_namespace` wrote."""
    return tuple(text.split(SEPARATOR)) if text else ()


def _optional(data: Any) -> JsonValue:
    return UNSET if data is None else decode(data)


def run_record(row: Run, thread_key: str, digest: str) -> RunRecord:
    """A run's row as the engine sees it."""
    return RunRecord(
        id=str(row.id),
        thread_id=thread_key,
        graph_id=row.graph_id,
        digest=digest,
        status=RunStatus(row.status),
        head_id=str(row.head_id),
        sequence=row.sequence,
        lineage=row.lineage,
        steps=row.steps,
        epoch=row.epoch,
        namespace=split_namespace(row.namespace),
        parent_run_id=str(row.parent_run_id) if row.parent_run_id else None,
        root_run_id=str(row.root_run_id),
        step_limit=row.step_limit,
        active_seconds=row.active_seconds,
        wake_at=row.wake_at,
        error=row.error,
        output=decode(row.output) if row.output is not None else None,
        actor=row.actor,
        metadata=row.metadata,
        cancel_requested_at=row.cancel_requested_at,
        cancel_reason=row.cancel_reason,
        is_queued=row.is_queued,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def checkpoint_record(
    row: Checkpoint,
    thread_key: str,
    values: Mapping[str, JsonValue],
    record: Mapping[str, Any],
) -> CheckpointRecord:
    """A checkpoint's row with its state; `record` is its decoded column."""
    return CheckpointRecord(
        id=str(row.id),
        thread_id=thread_key,
        run_id=str(row.run_id) if row.run_id else None,
        namespace=split_namespace(row.namespace),
        sequence=row.sequence,
        lineage=row.lineage,
        parent_id=str(row.parent_id) if row.parent_id else None,
        step=row.step,
        source=CheckpointSource(row.source),
        values=values,
        pending=tuple(Activation.from_json(a) for a in record.get("pending", ())),
        completed=tuple(record.get("completed", ())),
        joins=JoinState.from_json(record.get("joins", {})),
        metadata=record.get("metadata", {}),
        created_at=row.created_at,
        digest=f"sha256:{bytes(row.digest).hex()}",
    )


def attempt_row(run_id: str, attempt: AttemptRecord) -> NodeAttempt:
    """The row of an attempt."""
    return NodeAttempt(**attempt_columns(UUID(run_id), attempt))


def attempt_columns(run_id: UUID, attempt: AttemptRecord) -> dict[str, Any]:
    """The columns of an attempt's row."""
    result = attempt.result
    return {
        "id": UUID(attempt.id),
        "run_id": run_id,
        "activation_id": attempt.activation_id,
        "node_id": attempt.node_id,
        "number": attempt.number,
        "status": str(attempt.status),
        "lineage": attempt.lineage,
        "sequence": attempt.sequence,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "error": attempt.error,
        "result": None if result is None else encode(result),
        "is_folded": attempt.folded,
        "usage": attempt.usage,
    }


def attempt_record(row: NodeAttempt) -> AttemptRecord:
    """An attempt's row as the engine sees it."""
    return AttemptRecord(
        id=str(row.id),
        activation_id=row.activation_id,
        node_id=row.node_id,
        number=row.number,
        status=AttemptStatus(row.status),
        lineage=row.lineage,
        sequence=row.sequence,
        started_at=row.started_at,
        ended_at=row.ended_at,
        error=row.error,
        result=None if row.result is None else decode(row.result),
        usage=row.usage,
        folded=row.is_folded,
    )


def wait_row(run: Run, wait: WaitRecord) -> Wait:
    """The row of a wait; its due time is the store's to set."""
    return Wait(
        id=UUID(wait.id),
        question_id=wait.question_id,
        run=run,
        thread_id=run.thread_id,
        namespace=run.namespace,
        activation_id=wait.activation_id,
        node_id=wait.node_id,
        kind=str(wait.kind),
        status=str(wait.status),
        lineage=wait.lineage,
        sequence=wait.sequence,
        position=wait.position,
        key=wait.key,
        payload=encode(wait.payload),
        schema=None if wait.schema is None else encode(dict(wait.schema)),
        default=None if wait.default is UNSET else encode(wait.default),
        answer=None if wait.answer is UNSET else encode(wait.answer),
        answered_by=wait.answered_by or "",
        answered_sequence=wait.answered_sequence,
        due_at=wait.due_at,
    )


def wait_record(row: Wait, thread_key: str) -> WaitRecord:
    """A wait's row as the engine sees it."""
    return WaitRecord(
        id=str(row.id),
        question_id=row.question_id,
        activation_id=row.activation_id,
        node_id=row.node_id,
        kind=WaitKind(row.kind),
        status=WaitStatus(row.status),
        lineage=row.lineage,
        sequence=row.sequence,
        position=row.position,
        key=row.key,
        payload=decode(row.payload),
        schema=None if row.schema is None else decode(row.schema),
        default=_optional(row.default),
        due_at=row.due_at,
        answer=_optional(row.answer),
        answered_by=row.answered_by or None,
        answered_sequence=row.answered_sequence,
        asked_at=row.asked_at,
        namespace=split_namespace(row.namespace),
        thread_id=thread_key,
        run_id=str(row.run_id),
    )


def journal_record(row: JournalEvent) -> JournalRecord:
    """A journal row as readers see it."""
    return JournalRecord(
        run_id=str(row.run_id),
        number=row.number,
        first_event=row.first_event,
        events=unpack_events(row.events, row.checkpoint_id),
        recorded_at=row.recorded_at,
        checkpoint_id=str(row.checkpoint_id) if row.checkpoint_id else None,
        actor=row.actor,
    )
