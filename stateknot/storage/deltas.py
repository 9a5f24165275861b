"""How checkpoints are stored as what changed, and read as whole states.

Pure functions between a draft's parts and a row's bytes. See Note [Where a field
stands].

Note [Where a field stands]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A row holds what its superstep changed: `changes` has new values by field, `appends` the
items added to the end of lists. For every other field the row says where it stands:
`sets` has the sequence at which it was last written whole (the base of the lineage,
when left out), `tails` the sequence of the first items appended since. Neither grows
with the thread. A field that was dropped stands in `sets` at a row that has no value
for it, so that nothing older is read of it. Within a lineage sequences are consecutive,
so a state needs the rows in `sets` and those between the smallest tail and itself: one
query, whose cost follows the state and not the thread. A lineage's base row holds every
field, so no lineage needs another.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.kernel.profile import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.fold import StateDelta
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.kernel.writes import CheckpointDraft

_CHAIN = b"stateknot-checkpoint-chain-v1\0"
_JOURNAL = b"stateknot-journal-chain-v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the fields of a checkpoint stand. See Note [Where a field stands]."""

    sets: Mapping[str, int] = field(default_factory=dict)
    tails: Mapping[str, int] = field(default_factory=dict)

    def moved(self, delta: StateDelta, sequence: int) -> Places:
        """The places behind a row at `sequence` that stores `delta`."""
        sets, tails = dict(self.sets), dict(self.tails)
        for name in (*delta.changes, *delta.drops):
            sets[name] = sequence
            tails.pop(name, None)
        for name in delta.appends:
            tails.setdefault(name, sequence)
        return Places(sets=sets, tails=tails)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBytes:
    """The encoded parts of a checkpoint's row."""

    changes: bytes
    appends: bytes | None
    record: bytes


def encode_row(draft: CheckpointDraft, places: Places) -> RowBytes:
    """The bytes of a row. `places` are those behind this draft."""
    record: dict[str, JsonValue] = {
        "pending": [activation.to_json() for activation in draft.pending],
        "completed": [activation.id for activation in draft.completed],
        "joins": draft.joins.to_json(),
        "metadata": dict(draft.metadata),
        "sets": dict(places.sets),
        "tails": dict(places.tails),
    }
    return RowBytes(
        changes=encode(dict(draft.delta.changes)),
        appends=encode(dict(draft.delta.appends)) if draft.delta.appends else None,
        record=encode({key: value for key, value in record.items() if value}),
    )


def places_of(record: Mapping[str, Any]) -> Places:
    """The places that a decoded `record` column holds."""
    return Places(sets=record.get("sets", {}), tails=record.get("tails", {}))


def chain_digest(parent: bytes, row: RowBytes) -> bytes:
    """The digest of a row chained to that of its parent (empty for none)."""
    return _chained(_CHAIN, parent, (row.changes, row.appends or b"", row.record))


def journal_digest(previous: bytes, events: bytes) -> bytes:
    """The digest of a journal row chained to that of the row before."""
    return _chained(_JOURNAL, previous, (events,))


def _chained(domain: bytes, parent: bytes, parts: Iterable[bytes]) -> bytes:
    """Lengths stand before parts, so that bytes cannot move from one to the next."""
    digest = hashlib.sha256(domain)
    for part in (parent, *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A row as far as it matters for a state: its sequence and what it changed."""

    sequence: int
    changes: bytes | memoryview | None
    appends: bytes | memoryview | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The rows that a state needs: those listed, and those with appends in a range.

    The range is from `first_tail` (inclusive) up to the checkpoint itself; None where
    no field accumulates.
    """

    wanted: tuple[int, ...]
    first_tail: int | None


def span_of(places: Places, lineage: int) -> Span:
    """What must be read for a checkpoint whose fields stand at `places`."""
    wanted = sorted({lineage, *places.sets.values()})
    return Span(
        wanted=tuple(wanted), first_tail=min(places.tails.values(), default=None)
    )


def assemble(
    segments: Iterable[Segment], places: Places, lineage: int
) -> dict[str, JsonValue]:
    """The state whose fields stand at `places`, from its segments in any order."""
    values: dict[str, JsonValue] = {}
    tails: dict[str, list[JsonValue]] = {}
    grown: list[tuple[int, bytes | memoryview]] = []
    for segment in sorted(segments, key=lambda item: item.sequence):
        if segment.changes is not None:
            values |= {
                name: value
                for name, value in decode(segment.changes).items()
                if places.sets.get(name, lineage) == segment.sequence
            }
        if segment.appends is not None:
            grown.append((segment.sequence, segment.appends))
    # One document in place of a thousand small ones, of which each costs a call.
    appended = decode(b"[%b]" % b",".join(part for _, part in grown))
    for (sequence, _), parts in zip(grown, appended, strict=True):
        for name, items in parts.items():
            first = places.tails.get(name)
            if first is not None and sequence >= first:
                tails.setdefault(name, []).extend(items)
    for name, items in tails.items():
        values[name] = [*values.get(name, ()), *items]
    return values
