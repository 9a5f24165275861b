"""The built-in reducers, scenario 179 of the executor's specification."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.errors import ValidationError
from stateknot.kernel.likeness import copy_value
from stateknot.kernel.reducers import (
    Reducer,
    add,
    append,
    find_reducer,
    last_value,
    maximum,
    minimum,
    union,
)
from tests.kernel.state_samples import Tally, json_values, small

BUILT_IN = [add, append, last_value, maximum, minimum, union]


def keep_longer(old: str, new: str) -> str:
    return max(old, new, key=len)


@pytest.mark.parametrize(
    ("reducer", "old", "new", "result"),
    [
        (append, [1], [2, 1], [1, 2, 1]),
        (append, [1], (2, 3), [1, 2, 3]),
        (append, ["a"], "bc", ["a", "bc"]),
        (append, None, [1], [1]),
        (append, [1], [], [1]),
        (append, [], [[1]], [[1]]),
        (union, [2, 2, 1], [1, 3, 3], [2, 2, 1, 3]),
        (union, [1], {3, 2}, [1, 2, 3]),
        (union, {1}, [1, 2], {1, 2}),
        (union, frozenset({1}), {2}, frozenset({1, 2})),
        (union, None, ["a"], ["a"]),
        (union, [{"a": 1}], [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
        (minimum, 2, 1, 1),
        (minimum, 1, 2, 1),
        (minimum, None, 5, 5),
        (minimum, 5, None, 5),
        (minimum, 5, "a", 5),
        (maximum, 2, 3, 3),
        (maximum, 3, 2, 3),
        (maximum, None, 5, 5),
        (maximum, "a", 5, "a"),
        (add, 1, 2, 3),
        (add, [1], [2], [1, 2]),
        (add, None, 2, 2),
        (last_value, 1, None, None),
    ],
)
def test_built_in_reducer(reducer: Reducer, old: Any, new: Any, result: Any) -> None:
    assert reducer(old, new) == result
    assert type(reducer(old, new)) is type(result)


@pytest.mark.parametrize("reducer", [minimum, maximum])
def test_tie_keeps_the_current_value(reducer: Reducer) -> None:
    old, new = [1], [1]
    assert reducer(old, new) is old


@pytest.mark.parametrize("reducer", [append, union])
def test_accumulating_reducer_refuses_none(reducer: Reducer) -> None:
    """ST-01: None is no list of items; emptying a field takes an Overwrite."""
    with pytest.raises(TypeError, match="None"):
        reducer(["a"], None)


@pytest.mark.parametrize("reducer", BUILT_IN)
@given(old=st.lists(json_values, max_size=4), new=st.lists(json_values, max_size=4))
def test_built_in_reducer_changes_nothing_in_place(
    reducer: Reducer, old: list[Any], new: list[Any]
) -> None:
    before = copy_value((old, new))
    reducer(old, new)
    assert (old, new) == before


@pytest.mark.parametrize("reducer", [append, union])
@given(old=st.lists(small, max_size=4), new=st.lists(small, max_size=4))
def test_accumulating_reducer_keeps_what_was_there(
    reducer: Reducer, old: list[int], new: list[int]
) -> None:
    """The store keeps only what stands behind it."""
    assert reducer(old, new)[: len(old)] == old


def test_reducer_is_found_among_the_marks() -> None:
    assert find_reducer("items", Tally.model_fields["items"].metadata) == append
    assert find_reducer("note", Tally.model_fields["note"].metadata) is None


@pytest.mark.parametrize("function", [keep_longer, operator.add])
def test_named_function_is_a_reducer_with_its_name(function: Any) -> None:
    found = find_reducer("text", [function])
    assert found is not None
    assert found.identity == f"{function.__module__}.{function.__qualname__}"
    assert not found.is_pure


@pytest.mark.parametrize(
    "marks",
    [
        [lambda _old, new: new],
        [functools.partial(keep_longer)],
        [append, union],
        [append, keep_longer],
    ],
)
def test_reducer_without_one_name_is_refused(marks: list[Any]) -> None:
    with pytest.raises(ValidationError, match="'text'"):
        find_reducer("text", marks)
