"""The strict value profile: what may stand in a state, on every database alike.

See Note [One value profile]. `check_profile` refuses; `encode` gives the bytes that are
stored and digested; `decode` reads them. Which python value becomes which JSON value is
`state.py`'s business.

Note [One value profile]
~~~~~~~~~~~~~~~~~~~~~~~~
Databases differ in what their JSON columns do to NUL, lone surrogates, large integers
and key order, and JSON readers differ on NaN. A value that one backend takes and
another mangles would make a run unreadable after a move, so anything outside the common
ground is refused at the node that returned it, with the path to it, before a row is
written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import orjson

from stateknot.errors import SerializationError
from stateknot.kernel.limits import MAXIMUM_INTEGER, MAXIMUM_NESTING

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import JsonValue


def encode(value: JsonValue) -> bytes:
    """The stored bytes of a checked value: compact JSON with sorted keys, UTF-8."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def decode(data: bytes | memoryview) -> JsonValue:
    """The value that `encode` wrote."""
    return orjson.loads(data)


def check_profile(value: JsonValue, path: str, *, depth: int = 0) -> None:
    """Refuse what not every database stores and returns alike.

    `depth` is how many lists and mappings the value stands in. Raises
    SerializationError with the path of the first offending value.
    """
    if value is None or value is True or value is False:
        return
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is int:
        if abs(value) > MAXIMUM_INTEGER:
            _refuse(path, f"integer {value} is past 2^53-1; store it as a string")
    elif kind is float:
        if not math.isfinite(value):
            _refuse(path, f"{value} is not a JSON number; store None or a string")
    elif kind is list:
        _check_depth(depth, path)
        for index, item in enumerate(value):
            check_profile(item, f"{path}[{index}]", depth=depth + 1)
    elif kind is dict:
        _check_depth(depth, path)
        _check_mapping(value, path, depth)
    else:
        _refuse(path, f"a {kind.__name__} is not a JSON value")


def check_size(data: bytes, path: str, maximum: int) -> None:
    """Refuse `data` when it is longer than `maximum` bytes (inclusive bound)."""
    if len(data) > maximum:
        _refuse(
            path,
            f"the value takes {len(data):,} bytes, the limit is {maximum:,}; keep "
            "large content elsewhere and a reference to it in the state",
        )


def _check_depth(depth: int, path: str) -> None:
    if depth >= MAXIMUM_NESTING:
        start = path if len(path) <= 80 else f"{path[:77]}..."
        _refuse(start, f"the value is nested deeper than {MAXIMUM_NESTING} levels")


def _check_mapping(value: dict[str, JsonValue], path: str, depth: int) -> None:
    for key, item in value.items():
        if type(key) is not str:
            _refuse(path, f"key {key!r} is a {type(key).__name__}, not a string")
        _check_text(key, f"{path} (a key)")
        check_profile(item, f"{path}.{key}" if path else key, depth=depth + 1)


def _check_text(value: str, path: str) -> None:
    if value.isascii():
        if "\x00" in value:
            _refuse(path, "the text holds a NUL character")
        return
    if "\x00" in value:
        _refuse(path, "the text holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(path, "the text holds a lone surrogate")


def _refuse(path: str, reason: str) -> None:
    where = path or "the value"
    raise SerializationError(f"{where}: {reason}", path=path)
