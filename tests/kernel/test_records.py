"""Records that are stored as JSON come back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.profile import decode, encode
from stateknot.kernel.records import Activation, Event, JoinState
from stateknot.kernel.vocabulary import UNSET
from tests.kernel.state_samples import json_values, texts

args = st.just(UNSET) | json_values
activations = st.builds(Activation, node=texts, arg=args, id=texts)
events = st.builds(
    Event,
    kind=texts,
    step=st.none() | st.integers(0, 99),
    node=st.none() | texts,
    data=st.dictionaries(texts, json_values, max_size=2),
)
joins = st.builds(
    JoinState,
    arrivals=st.dictionaries(texts, st.lists(texts, max_size=3).map(tuple), max_size=2),
    withheld=st.dictionaries(
        texts, st.lists(json_values, max_size=3).map(tuple), max_size=2
    ),
)


def stored(data: Any) -> Any:
    return decode(encode(data))


@given(activations)
def test_activation_comes_back(activation: Activation) -> None:
    """Scenario 87."""
    assert Activation.from_json(stored(activation.to_json())) == activation


@given(events)
def test_event_comes_back(event: Event) -> None:
    assert Event.from_json(stored(event.to_json())) == event


@given(joins)
def test_joins_come_back(state: JoinState) -> None:
    """Scenario 87."""
    assert JoinState.from_json(stored(state.to_json())) == state


@pytest.mark.parametrize("arg", [None, 0, "", [], {}, False])
def test_empty_argument_is_not_a_missing_one(arg: Any) -> None:
    activation = Activation(node="work", arg=arg)
    restored = Activation.from_json(stored(activation.to_json()))
    assert restored.arg == arg
    assert not restored.is_plain


def test_event_of_step_zero_keeps_its_step() -> None:
    """Only what is absent is left out."""
    event = Event(kind="run.admitted", step=0)
    assert event.to_json() == ["run.admitted", 0]
    assert Event.from_json(event.to_json()) == event


def test_record_without_newer_parts_is_read() -> None:
    """Scenario 86."""
    assert Activation.from_json({"node": "work"}) == Activation(node="work")
    assert JoinState.from_json({}) == JoinState()
    assert Event.from_json(["run.started"]) == Event(kind="run.started")


def test_empty_parts_take_no_room() -> None:
    assert Activation(node="work").to_json() == {"node": "work"}
    assert JoinState().to_json() == {}
