"""The stored form of a journal row's events.

A boundary's row tells the same few kinds, mostly of one step, so what they share is
stored once. See Note [How events are packed]. Read `journal.py` for who writes rows.

Note [How events are packed]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The JSON array begins with the step that its events share (null for none). Each event
follows as [kind, node, facts, step], with what is absent or shared left off the end; a
kind that stands in `KINDS` is stored as its place there, so that list only grows at its
end. 0 alone is the event that the row's own checkpoint is saved, whose id the row has
already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from stateknot.kernel.profile import decode, encode
from stateknot.kernel.records import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = (
    "checkpoint.saved",
    "step.started",
    "task.scheduled",
    "node.started",
    "state.updated",
    "node.completed",
    "route.selected",
    "step.completed",
    "context.forked",
    "run.started",
    "recursion.depth_changed",
    "run.completed",
)
_PLACES: dict[str, int] = {kind: place for place, kind in enumerate(KINDS)}
_SAVED = KINDS[0]


def pack_events(events: Sequence[Event], checkpoint_id: UUID | None) -> bytes:
    """The bytes of the events of a row that belongs to `checkpoint_id`."""
    shared = next((event.step for event in events if event.step is not None), None)
    own = {"checkpoint": str(checkpoint_id)}
    return encode([shared, *(_packed(event, shared, own) for event in events)])


def _packed(event: Event, shared: int | None, own: dict[str, str]) -> Any:
    if event.kind == _SAVED and event == Event(kind=_SAVED, data=own):
        return 0
    entry = [_PLACES.get(event.kind, event.kind), event.node, dict(event.data)]
    if event.step != shared:
        return [*entry, event.step]
    while len(entry) > 1 and entry[-1] in (None, {}):
        entry.pop()
    return entry


def unpack_events(
    data: bytes | memoryview, checkpoint_id: UUID | None
) -> tuple[Event, ...]:
    """Read what `pack_events` wrote for a row of the same checkpoint."""
    shared, *entries = decode(data)
    return tuple(_unpacked(entry, shared, checkpoint_id) for entry in entries)


def _unpacked(entry: Any, shared: int | None, checkpoint_id: UUID | None) -> Event:
    if entry == 0:
        return Event(kind=_SAVED, data={"checkpoint": str(checkpoint_id)})
    kind = KINDS[entry[0]] if isinstance(entry[0], int) else entry[0]
    node = entry[1] if len(entry) > 1 else None
    facts = entry[2] if len(entry) > 2 else {}
    step = entry[3] if len(entry) > 3 else shared
    return Event(kind=kind, step=step, node=node, data=facts)
