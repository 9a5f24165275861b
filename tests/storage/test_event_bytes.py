"""A journal row's events come back as they were told, from few bytes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.records import Event
from stateknot.storage.event_bytes import KINDS, pack_events, unpack_events

CHECKPOINT = UUID("019a7f6e-3c55-7d21-a2b8-6f7a12345678")
SAVED = Event(kind="checkpoint.saved", data={"checkpoint": str(CHECKPOINT)})

kinds = st.sampled_from(KINDS) | st.text(min_size=1, max_size=8)
facts = st.dictionaries(st.text(max_size=4), st.integers(-9, 9) | st.none(), max_size=2)
events = st.builds(
    Event,
    kind=kinds,
    step=st.none() | st.integers(0, 3),
    node=st.none() | st.text(max_size=4),
    data=facts,
)


@given(told=st.lists(events | st.just(SAVED), max_size=6), has_row=st.booleans())
def test_packed_events_come_back_equal(told: list[Event], has_row: bool) -> None:
    checkpoint = CHECKPOINT if has_row else None
    assert unpack_events(pack_events(told, checkpoint), checkpoint) == tuple(told)


def test_saved_event_of_another_checkpoint_keeps_its_id() -> None:
    other = Event(kind="checkpoint.saved", data={"checkpoint": "elsewhere"})
    assert unpack_events(pack_events([other], CHECKPOINT), CHECKPOINT) == (other,)


@pytest.mark.parametrize(
    ("event", "stored"),
    [
        (SAVED, b"[null,0]"),
        (Event(kind="node.started", step=7, node="a"), b'[7,[3,"a"]]'),
        (Event(kind="lease.expired", data={"epoch": 2}), None),
    ],
)
def test_stored_form_stays_readable(event: Event, stored: bytes | None) -> None:
    """Rows of earlier versions hold these bytes: a place in the list never moves."""
    stored = stored or b'[null,["lease.expired",null,{"epoch":2}]]'
    assert pack_events([event], CHECKPOINT) == stored
    assert unpack_events(stored, CHECKPOINT) == (event,)
