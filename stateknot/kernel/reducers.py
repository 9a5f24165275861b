"""How an update to one field folds into its value.

A reducer is named in an `Annotated` field: one of those below, or a named function of
`(old, new)`. `Reducer.accumulates` tells the fold that it only adds to the end of a
list, so that what is stored is what was added. Read `fold.py` for where they are used.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stateknot.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class Reducer:
    """A named fold of a field: `reducer(old, new)` gives the new value.

    `identity` is what a revision's digest holds, so it never depends on a body.
    """

    identity: str
    function: Callable[[Any, Any], Any]
    accumulates: bool = False

    def __call__(self, old: Any, new: Any) -> Any:
        return self.function(old, new)


def _items(new: Any) -> list[Any]:
    if new is None:
        msg = "an accumulating field takes a list of items, not None"
        raise TypeError(msg)
    return list(new) if isinstance(new, (list, tuple)) else [new]


def _append(old: Any, new: Any) -> list[Any]:
    return [*(old or ()), *_items(new)]


def _union(old: Any, new: Any) -> Any:
    if isinstance(old, (set, frozenset)):
        return old | (new if isinstance(new, (set, frozenset)) else set(_items(new)))
    merged = list(old or ())
    items = sorted(new, key=repr) if isinstance(new, (set, frozenset)) else _items(new)
    for item in items:
        if item not in merged:
            merged.append(item)
    return merged


def _minimum(old: Any, new: Any) -> Any:
    try:
        return new if old is None or new < old else old
    except TypeError:
        return old


def _maximum(old: Any, new: Any) -> Any:
    try:
        return new if old is None or new > old else old
    except TypeError:
        return old


append = Reducer("append", _append, accumulates=True)
union = Reducer("union", _union, accumulates=True)
minimum = Reducer("minimum", _minimum)
maximum = Reducer("maximum", _maximum)
add = Reducer("add", lambda old, new: new if old is None else old + new)
last_value = Reducer("last_value", lambda _old, new: new)


def find_reducer(field: str, info: FieldInfo) -> Reducer | None:
    """The reducer that a field's annotation names, or None.

    Raises ValidationError for a lambda (it has no name that a digest could hold) and
    for two reducers on one field.
    """
    found = [item for item in info.metadata if isinstance(item, Reducer)]
    found += [
        _named(field, item)
        for item in info.metadata
        if inspect.isfunction(item) or inspect.isbuiltin(item)
    ]
    if len(found) > 1:
        names = ", ".join(item.identity for item in found)
        raise ValidationError(
            f"field {field!r} has several reducers ({names}); keep one"
        )
    return found[0] if found else None


def _named(field: str, function: Any) -> Reducer:
    if "<lambda>" in function.__qualname__:
        raise ValidationError(
            f"the reducer of field {field!r} is a lambda, which has no name that a "
            "revision's digest could hold; use a named function"
        )
    return Reducer(f"{function.__module__}.{function.__qualname__}", function)
