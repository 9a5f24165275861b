"""Copies that share nothing, and whether two values are alike.

Alike is stricter than equal: `True` is not `1`, a string enum is not its string, and
`Decimal("1.10")` is not `Decimal("1.1")`. An equal value of another type would be
stored as one thing and read back as another. It is looser in one place: a time zone is
only its offset, which is all that is stored of it. Read `state.py` for who compares.
"""

from __future__ import annotations

import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import copysign
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ModelT = TypeVar("ModelT", bound=BaseModel)

_ATOMIC = frozenset(
    {str, int, float, bool, bytes, type(None), datetime, date, timedelta, Decimal, UUID}
)

_set = object.__setattr__
_SIMPLE = frozenset({str, int, bytes, type(None)})
"""Types of which no two have equal values, so that for them equal is alike."""


def copy_value(value: Any) -> Any:
    """A copy that shares nothing mutable with `value`.

    Faster than `copy.deepcopy` on JSON-like values, which is what states mostly hold.
    """
    kind = type(value)
    if kind in _ATOMIC:
        return value
    if kind is list:
        if _kinds(value) <= _ATOMIC:
            return value.copy()
        return [item if type(item) in _ATOMIC else copy_value(item) for item in value]
    if kind is dict:
        return {key: copy_value(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return copy_model(value)
    return copy.deepcopy(value)


def copy_model(value: ModelT) -> ModelT:
    """A copy of a model instance that shares nothing mutable with it.

    What a cached property kept is left behind: it may be about an older state.
    """
    kind = type(value)
    fields = kind.model_fields
    own = {k: copy_value(v) for k, v in value.__dict__.items() if k in fields}
    # What pydantic's own copy sets, without the copies that would be thrown away.
    copied = kind.__new__(kind)
    _set(copied, "__dict__", own)
    _set(copied, "__pydantic_fields_set__", set(value.__pydantic_fields_set__))
    for slot in ("__pydantic_extra__", "__pydantic_private__"):
        held = getattr(value, slot)
        _set(copied, slot, None if held is None else copy_value(dict(held)))
    return copied


def is_alike(one: Any, other: Any) -> bool:
    """Whether `one` and `other` are equal in value and in type, all the way down."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return _are_sequences_alike(one, other)
    if isinstance(one, dict):
        return _are_mappings_alike(one, other)
    if isinstance(one, BaseModel):
        return _are_models_alike(one, other)
    if isinstance(one, (set, frozenset)):
        return bool(one == other) and _kinds(one) == _kinds(other)
    if isinstance(one, (datetime, time)):
        return _are_times_alike(one, other)
    return _are_scalars_alike(one, other)


def _are_sequences_alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    kinds = _kinds(one)
    if len(one) != len(other) or kinds != _kinds(other):
        return False
    if kinds <= _SIMPLE:
        return one == other
    return all(map(is_alike, one, other))


def _are_mappings_alike(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    return (
        len(one) == len(other)
        and _kinds(one) == _kinds(other)
        and all(key in other and is_alike(one[key], other[key]) for key in one)
    )


def _are_models_alike(one: BaseModel, other: BaseModel) -> bool:
    return all(
        is_alike(getattr(one, name), getattr(other, name))
        for name in type(one).model_fields
    ) and is_alike(one.__pydantic_extra__, other.__pydantic_extra__)


def _are_times_alike(one: datetime | time, other: datetime | time) -> bool:
    """Compare wall clock and offset.

    Python's own `==` says no to every time of the hour that a zone's clock repeats.
    """
    return (
        (one.tzinfo is None) == (other.tzinfo is None)
        and one.utcoffset() == other.utcoffset()
        and one.replace(tzinfo=None, fold=0) == other.replace(tzinfo=None, fold=0)
    )


def _are_scalars_alike(one: Any, other: Any) -> bool:
    if isinstance(one, float):
        return one == other and copysign(1, one) == copysign(1, other)
    if isinstance(one, Decimal):
        return one.as_tuple() == Decimal(other).as_tuple()
    if isinstance(one, Enum):
        return False
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - a value's own `__eq__` may raise anything
        return False


def _kinds(values: Any) -> set[type]:
    return set(map(type, values))
