"""Likeness and copies: two values are alike when storing one gives the other."""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from pydantic import BaseModel, ConfigDict, PrivateAttr

from stateknot.kernel.likeness import copy_model, copy_value, is_alike
from tests.kernel.state_samples import (
    Colour,
    Level,
    Line,
    Mood,
    Rich,
    json_values,
    rich_states,
)

BERLIN = ZoneInfo("Europe/Berlin")
REPEATED = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)


class Refusing:
    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = None  # type: ignore[assignment]  # a value that is not hashable


class Tagged(Line):
    pass


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (1, 1.0),
        (0.0, -0.0),
        (Mood.GOOD, "good"),
        (Level.LOW, 1),
        (Decimal("1.10"), Decimal("1.1")),
        ((1, 2), [1, 2]),
        ([1, 2], [1, True]),
        ({"a": 1}, {"a": True}),
        ({1: "a"}, {True: "a"}),
        ({1}, {True}),
        (Line(), Tagged()),
        (REPEATED, REPEATED.replace(fold=1)),
        (time(12), time(12, tzinfo=BERLIN)),
        (Refusing(), Refusing()),
    ],
)
def test_value_of_another_type_or_form_is_not_alike(one: Any, other: Any) -> None:
    """ST-02: equal is not enough."""
    assert not is_alike(one, other)
    assert not is_alike([one], [other])


@pytest.mark.parametrize("fold", [0, 1])
def test_time_of_a_repeated_hour_is_like_its_offset(fold: int) -> None:
    """Python calls such times unequal to every time of another zone."""
    zoned = REPEATED.replace(fold=fold)
    offset = timezone(timedelta(hours=2 - fold))
    assert is_alike(zoned, datetime(2026, 10, 25, 2, 30, tzinfo=offset))


@given(json_values)
def test_copied_value_is_alike(value: Any) -> None:
    assert is_alike(copy_value(value), value)


@given(rich_states)
def test_copied_model_is_alike(state: Rich) -> None:
    copied = copy_model(state)
    assert is_alike(copied, state)
    assert copied.lines is not state.lines
    assert copied.line is not state.line


class Secretive(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)
    items: list[int]
    colour: Colour = Colour.RED
    _held: list[int] = PrivateAttr(default_factory=list)

    @cached_property
    def count(self) -> int:
        return len(self.items)


def test_copied_model_shares_nothing_mutable() -> None:
    state = Secretive(items=[1], more=[2])  # type: ignore[call-arg]  # extra
    state._held.append(3)
    copied: Any = copy_model(state)
    copied.items.append(9)
    copied.more.append(9)
    copied._held.append(9)
    assert (state.items, state.model_extra, state._held) == ([1], {"more": [2]}, [3])


def test_copied_model_forgets_cached_properties() -> None:
    state = Secretive(items=[1])
    assert state.count == 1
    copied = copy_model(state)
    copied.items.append(2)
    assert copied.count == 2


def test_enum_member_is_copied_as_itself() -> None:
    assert copy_value([Colour.RED]) == [Colour.RED]
    assert is_alike(copy_value({"a": Colour.RED}), {"a": Colour.RED})
