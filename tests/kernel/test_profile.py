"""The value profile: what may stand in a state, on every database alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from stateknot.errors import SerializationError
from stateknot.kernel.limits import MAXIMUM_INTEGER, MAXIMUM_NESTING
from stateknot.kernel.profile import check_profile, check_size, decode, encode
from tests.kernel.state_samples import json_values


@given(json_values)
def test_checked_value_is_stored_and_read_back(value: Any) -> None:
    check_profile(value, "field")
    assert decode(encode(value)) == value


@given(json_values)
def test_stored_bytes_do_not_depend_on_key_order(value: Any) -> None:
    assert encode(_reversed(value)) == encode(value)


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "field"),
        ({"a": [1.0, float("inf")]}, "field.a[1]"),
        ("a\x00b", "field"),
        ("ä\x00", "field"),
        ("\ud800", "field"),
        (MAXIMUM_INTEGER + 1, "field"),
        ([-MAXIMUM_INTEGER - 1], "field[0]"),
        ({1: "a"}, "field"),
        ({"a\x00": 1}, "field (a key)"),
        ({"\udfff": 1}, "field (a key)"),
        ((1, 2), "field"),
        (b"bytes", "field"),
        ({"a": {"b": object()}}, "field.a.b"),
    ],
)
def test_value_outside_the_profile_is_refused_with_its_path(
    value: Any, path: str
) -> None:
    """ST-02, decision 12."""
    with pytest.raises(SerializationError) as caught:
        check_profile(value, "field")
    assert caught.value.path == path


def test_extreme_integers_are_admitted() -> None:
    check_profile([MAXIMUM_INTEGER, -MAXIMUM_INTEGER], "field")


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_is_admitted_up_to_its_limit() -> None:
    check_profile(_nested(MAXIMUM_NESTING), "field")
    encode(_nested(MAXIMUM_NESTING))


@pytest.mark.parametrize("levels", [MAXIMUM_NESTING + 1, 100_000])
def test_deeper_nesting_is_refused(levels: int) -> None:
    """Encoders and databases give up at different depths, with errors of their own."""
    with pytest.raises(SerializationError, match="nested"):
        check_profile(_nested(levels), "field")


def test_size_over_the_limit_names_path_and_size() -> None:
    """ST-10."""
    check_size(b"12345", "field", 5)
    with pytest.raises(SerializationError, match=r"field: .*1,234 bytes") as caught:
        check_size(b"x" * 1234, "field", 1233)
    assert caught.value.path == "field"
