"""How rows of changes make a state: `places_of`, `span_of`, `assemble`, the chain."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.fold import StateDelta
from stateknot.kernel.profile import decode, encode
from stateknot.storage.deltas import (
    Places,
    RowBytes,
    Segment,
    Span,
    assemble,
    chain_digest,
    journal_digest,
    places_of,
    span_of,
)

FIELDS = ["log", "mark", "notes"]
ITEMS = st.lists(st.integers(0, 9), max_size=3)
DELTAS = st.builds(
    StateDelta,
    changes=st.dictionaries(st.sampled_from(FIELDS), ITEMS, max_size=2),
    appends=st.dictionaries(st.sampled_from(FIELDS), ITEMS.filter(bool), max_size=2),
    drops=st.sampled_from([(), (), ("log",), ("mark", "notes")]),
).map(lambda delta: without_overlap(delta))
BASE = {"log": [0], "mark": [], "notes": [7]}


def without_overlap(delta: StateDelta) -> StateDelta:
    """A fold never both sets and appends one field, and a move only sets and drops."""
    gone = delta.drops
    changes = {k: v for k, v in delta.changes.items() if k not in gone}
    taken = changes if not gone else FIELDS
    appends = {k: v for k, v in delta.appends.items() if k not in taken}
    return StateDelta(changes=changes, appends=appends, drops=gone)


def segment(sequence: int, delta: StateDelta) -> Segment:
    return Segment(
        sequence=sequence,
        changes=encode(dict(delta.changes)),
        appends=encode(dict(delta.appends)) if delta.appends else None,
    )


def lay_down(deltas: list[StateDelta], lineage: int) -> list[tuple[Segment, Places]]:
    """The rows of a lineage: a base, then one row per delta."""
    base = StateDelta(changes=BASE)
    rows = [(segment(lineage, base), Places())]
    for offset, delta in enumerate(deltas, start=1):
        places = rows[-1][1].moved(delta, lineage + offset)
        rows.append((segment(lineage + offset, delta), places))
    return rows


def needed(rows: list[tuple[Segment, Places]], index: int, span: Span) -> list[Segment]:
    """What the span asks for, as the store's query gives it: columns only if wanted."""
    own, _ = rows[index]
    found = [own]
    for row, _ in rows[:index]:
        in_tail = span.first_tail is not None and row.sequence >= span.first_tail
        is_wanted = row.sequence in span.wanted
        if is_wanted or (in_tail and row.appends is not None):
            found.append(
                Segment(
                    sequence=row.sequence,
                    changes=row.changes if is_wanted else None,
                    appends=row.appends if in_tail else None,
                )
            )
    return found


@given(deltas=st.lists(DELTAS, max_size=12), lineage=st.integers(0, 50))
def test_every_row_reads_back_as_its_deltas_fold(
    deltas: list[StateDelta], lineage: int
) -> None:
    rows = lay_down(deltas, lineage)
    expected: dict[str, Any] = dict(BASE)
    for index, (_, places) in enumerate(rows):
        if index:
            expected = deltas[index - 1].apply(expected)
        stored = places_of(decode(encode({"sets": places.sets, "tails": places.tails})))
        segments = needed(rows, index, span_of(stored, lineage))
        assert assemble(reversed(segments), stored, lineage) == expected


@given(deltas=st.lists(DELTAS, max_size=20))
def test_places_do_not_grow_with_the_thread(deltas: list[StateDelta]) -> None:
    _, places = lay_down(deltas, 0)[-1]
    assert len(places.sets) <= len(FIELDS)
    assert len(places.tails) <= len(FIELDS)


def test_untouched_field_is_in_no_row_but_the_base() -> None:
    rows = lay_down([StateDelta(changes={"mark": [i]}) for i in range(5)], 0)
    assert all(b"notes" not in bytes(row.changes or b"") for row, _ in rows[1:])


def test_overwritten_list_forgets_its_items() -> None:
    deltas = [
        StateDelta(appends={"log": [1]}),
        StateDelta(changes={"log": [9]}),
        StateDelta(appends={"log": [10]}),
    ]
    rows = lay_down(deltas, 3)
    _, places = rows[-1]
    assert (places.sets, places.tails) == ({"log": 5}, {"log": 6})
    span = span_of(places, 3)
    assert (span.wanted, span.first_tail) == ((3, 5), 6)


def test_digest_names_every_part_in_its_place() -> None:
    row = RowBytes(changes=b"ab", appends=None, record=b"c")
    variants = [
        row,
        RowBytes(changes=b"a", appends=b"b", record=b"c"),
        RowBytes(changes=b"ab", appends=b"c", record=b""),
        RowBytes(changes=b"a", appends=None, record=b"bc"),
    ]
    digests = {chain_digest(b"", variant) for variant in variants}
    digests |= {chain_digest(b"\x00", row), journal_digest(b"", b"ab")}
    assert len(digests) == len(variants) + 2
    assert all(len(digest) == 32 for digest in digests)
