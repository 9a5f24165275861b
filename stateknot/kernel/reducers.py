"""How an update to one field folds into its value.

A reducer is named in an `Annotated` field: one of those below, or a named function of
`(old, new)`. `Reducer.accumulates` tells the fold that it only adds to the end of a
list, so that what is stored is what was added. Read `fold.py` for where they are used.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stateknot.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Reducer:
    """A named fold of a field: `reducer(old, new)` gives the new value.

    `identity` is what a revision's digest holds, so it never depends on a body. A pure
    one is known not to change what it is given.
    """

    identity: str
    function: Callable[[Any, Any], Any]
    accumulates: bool = False
    is_pure: bool = False

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


def _add(old: Any, new: Any) -> Any:
    return new if old is None else old + new


append = Reducer("append", _append, accumulates=True, is_pure=True)
union = Reducer("union", _union, accumulates=True, is_pure=True)
minimum = Reducer("minimum", _minimum, is_pure=True)
maximum = Reducer("maximum", _maximum, is_pure=True)
add = Reducer("add", _add, is_pure=True)
last_value = Reducer("last_value", lambda _old, new: new, is_pure=True)


def find_reducer(field: str, marks: Sequence[Any]) -> Reducer | None:
    """The reducer among the `marks` annotated on a field, or None.

    Raises ValidationError for two reducers on one field, and for one that has no name
    which a digest could hold (a lambda, a partial).
    """
    found = [item for item in marks if isinstance(item, Reducer)]
    found += [_named(field, item) for item in marks if _is_function(item)]
    if len(found) > 1:
        names = ", ".join(item.identity for item in found)
        raise ValidationError(
            f"field {field!r} has several reducers ({names}); keep one"
        )
    return found[0] if found else None


def _is_function(mark: Any) -> bool:
    return inspect.isroutine(mark) or isinstance(mark, functools.partial)


def _named(field: str, function: Any) -> Reducer:
    return Reducer(function_name(function, f"the reducer of field {field!r}"), function)


def function_name(function: Any, what: str) -> str:
    """The name by which a digest knows `function`: its module and qualified name.

    Raises ValidationError when it has none; `what` says which function it is.
    """
    name = getattr(function, "__qualname__", None)
    if name is None or "<lambda>" in name:
        kind = "a lambda" if name else f"a {type(function).__name__}"
        raise ValidationError(
            f"{what} is {kind}, which has no name that its revision's digest could "
            "hold; use a named function"
        )
    return f"{function.__module__}.{name}"
