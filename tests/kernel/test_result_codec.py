"""Results kept for a later fold: they fold later as they would have at once."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from stateknot.kernel.commands import Overwrite, Send, Timer
from stateknot.kernel.fold import StateFold
from stateknot.kernel.likeness import is_alike
from stateknot.kernel.outcome import Completed
from stateknot.kernel.profile import check_profile, decode, encode
from stateknot.kernel.result_codec import decode_result, encode_result
from stateknot.kernel.vocabulary import UNSET
from tests.kernel.state_samples import (
    Anything,
    Colour,
    Line,
    Mood,
    Rich,
    Tally,
    json_values,
    rich_states,
    tally_updates,
)

TALLY, RICH = StateFold(Tally), StateFold(Rich)


def kept(fold: StateFold, outcome: Completed) -> Completed | None:
    """The outcome as it comes back from a store, None where it has no form."""
    data = encode_result(fold, "work", outcome)
    if data is None:
        return None
    check_profile(data, "result")
    return decode_result(fold, decode(encode(data)), "attempt")


def kept_update(fold: StateFold, update: Any) -> Any:
    restored = kept(fold, Completed(update=update))
    assert restored is not None
    return restored.update


@given(tally_updates, tally_updates)
def test_kept_update_folds_as_it_would_have_at_once(before: Any, update: Any) -> None:
    """D18, PF-05."""
    state = TALLY.fold(TALLY.initial({}).state, [("a", before)]).state
    at_once = TALLY.fold(state, [("work", update)])
    later = TALLY.fold(state, [("work", kept_update(TALLY, update))])
    assert is_alike(later.state, at_once.state)
    assert later.delta == at_once.delta


@given(rich_states)
def test_kept_typed_update_comes_back_alike(state: Rich) -> None:
    """ST-02."""
    given_fields = {name: getattr(state, name) for name in Rich.model_fields}
    for update in (state, given_fields):
        assert is_alike(kept_update(RICH, update), given_fields)


@given(json_values)
def test_kept_open_value_comes_back_alike(value: Any) -> None:
    assert is_alike(
        kept_update(StateFold(Anything), {"value": value}), {"value": value}
    )


@pytest.mark.parametrize(
    "update",
    [
        {"items": "one item"},
        {"labels": ["a", "b"]},
        {"labels": {"a", "b"}},
        {"names": {"b", "a"}},
        {"total": 1.5},
        {"items": Overwrite([])},
        {"labels": Overwrite({"a"})},
        {"note": "x", "total": 0},
        {},
    ],
)
def test_kept_update_keeps_the_form_in_which_it_was_returned(update: Any) -> None:
    """A reducer sees what the node returned, not what its field would make of it."""
    assert is_alike(kept_update(TALLY, update), update)


def test_kept_set_is_stored_in_a_stable_order() -> None:
    """A set's own order differs from process to process."""
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    data = encode_result(TALLY, "work", Completed(update={"names": set(words)}))
    assert data == {"update": {"names": {"set": sorted(words)}}}


def test_kept_tuple_comes_back_as_a_list() -> None:
    assert kept_update(TALLY, {"items": ("a", "b")}) == {"items": ["a", "b"]}


@pytest.mark.parametrize(
    "update",
    [
        {"value": object()},
        {"value": threading.Lock()},
        {"value": Mood.GOOD},
        {"value": Decimal("1.10")},
        {"value": {object()}},
        {"value": float("nan")},
        {"typo": 1},
        Line(sku="a"),
        [1],
    ],
)
def test_update_without_a_stored_form_is_not_kept(update: Any) -> None:
    """ST-05: the node runs again, which its attempt then says."""
    assert kept(StateFold(Anything), Completed(update=update)) is None


@pytest.mark.parametrize(
    "outcome",
    [
        Completed(),
        Completed(goto=()),
        Completed(goto=("b", Send("c", None), Send("c", {"x": [1]}), "__end__")),
        Completed(route="yes"),
        Completed(output=None),
        Completed(output={"x": 1}),
    ],
)
def test_kept_choice_comes_back(outcome: Completed) -> None:
    restored = kept(TALLY, outcome)
    assert restored is not None
    assert restored.attempt_id == "attempt"
    for name in ("update", "goto", "route", "output", "timer"):
        assert getattr(restored, name) == getattr(outcome, name)
    assert (restored.output is UNSET) is (outcome.output is UNSET)


@pytest.mark.parametrize(
    "until", [timedelta(hours=1), datetime(2027, 1, 1, tzinfo=UTC)]
)
def test_kept_timer_still_waits(until: Any) -> None:
    """Decision 4: a result that waited for a sibling must not lose its timer."""
    restored = kept(TALLY, Completed(goto=("b",), timer=Timer(until, goto="b")))
    assert restored is not None
    assert restored.timer is not None
    assert restored.timer.until == until


class Change(BaseModel):
    delta: int = 0
    note: str = "default"


def sum_up(state: Tally, updates: list[tuple[str, Any]]) -> Any:
    return {"total": state.total + sum(_delta(update) for _, update in updates)}


def _delta(update: Any) -> int:
    value: int = update.delta if isinstance(update, Change) else update["delta"]
    return value


@pytest.mark.parametrize("update_model", [None, Change])
@pytest.mark.parametrize("update", [{"delta": 3}, Change(delta=3)])
def test_kept_update_of_a_whole_state_reducer(update: Any, update_model: Any) -> None:
    """The reducer gets what the node returned: a mapping or the update model."""
    fold = StateFold(Tally, update_model=update_model, reducer=sum_up)
    restored = kept(fold, Completed(update=update))
    if isinstance(update, Change) and update_model is None:
        assert restored is None
        return
    assert restored is not None
    assert is_alike(restored.update, update)
    if isinstance(update, Change):
        assert restored.update.model_fields_set == {"delta"}


def test_kept_enum_keeps_its_type() -> None:
    """ST-02."""
    update = kept_update(RICH, {"colour": Colour.BLUE})
    assert update == {"colour": Colour.BLUE}
