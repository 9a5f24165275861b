"""Appending to a run's journal: dense numbers, and a digest chained to the row before.

The caller holds the run's row (it updated or locked it in this transaction), which is
what keeps the numbers dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from uuid_utils.compat import uuid7

from stateknot.models import JournalEvent
from stateknot.storage.deltas import journal_digest
from stateknot.storage.event_bytes import pack_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.records import Event
    from stateknot.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalHead:
    """Where a run's journal ends: the next number, its events, the last digest."""

    number: int = 0
    events: int = 0
    digest: bytes = b""

    def after(self, count: int, digest: bytes) -> JournalHead:
        """The head behind a row of `count` events."""
        return JournalHead(
            number=self.number + 1, events=self.events + count, digest=digest
        )


def journal_row(
    run_id: UUID,
    head: JournalHead,
    events: Sequence[Event],
    *,
    checkpoint_id: str | None = None,
    actor: str = "",
) -> JournalEvent:
    """The row that stands at `head`."""
    columns = journal_columns(
        run_id, head, events, checkpoint_id=checkpoint_id, actor=actor
    )
    return JournalEvent(**columns)


def journal_columns(
    run_id: UUID,
    head: JournalHead,
    events: Sequence[Event],
    *,
    checkpoint_id: str | UUID | None = None,
    actor: str = "",
) -> dict[str, Any]:
    """The columns of the row that stands at `head`."""
    if isinstance(checkpoint_id, str):
        checkpoint_id = UUID(checkpoint_id)
    data = pack_events(events, checkpoint_id)
    return {
        "id": uuid7(),
        "run_id": run_id,
        "number": head.number,
        "first_event": head.events,
        "checkpoint_id": checkpoint_id,
        "actor": actor,
        "events": data,
        "digest": journal_digest(head.digest, data),
    }


def load_journal_head(run: Run, using: str) -> JournalHead:
    """Where the journal of a run that the caller holds ends."""
    if not run.next_journal:
        return JournalHead()
    last = (
        JournalEvent.objects.using(using)
        .filter(run_id=run.id, number=run.next_journal - 1)
        .values_list("digest", flat=True)
        .first()
    )
    return JournalHead(
        number=run.next_journal,
        events=run.event_count,
        digest=b"" if last is None else bytes(last),
    )


def append_journal(
    run: Run,
    events: Sequence[Event],
    *,
    using: str,
    checkpoint_id: str | None = None,
    actor: str = "",
) -> None:
    """Append a row and move `run`'s counters, which the caller saves.

    Locks: the caller's on the run. Does nothing when there is nothing to tell.
    """
    if not events:
        return
    head = load_journal_head(run, using)
    row = journal_row(run.id, head, events, checkpoint_id=checkpoint_id, actor=actor)
    row.save(using=using, force_insert=True)
    run.next_journal = head.number + 1
    run.event_count = head.events + len(events)
