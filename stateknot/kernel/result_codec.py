"""Pending results in JSON: finished work that waits for its fold.

A result is stored only if it comes back alike, so that it folds later as it would have
folded at once: a field's value in the form of the state model's field, else in its
general JSON form. `encode_result` gives None for a result that cannot be stored; such
an activation runs again, which its attempt then says.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Interrupt, Overwrite, Send, Timer
from stateknot.kernel.likeness import is_alike
from stateknot.kernel.outcome import Completed, Target, to_json_value
from stateknot.kernel.profile import encode
from stateknot.kernel.vocabulary import UNSET, JsonValue

if TYPE_CHECKING:
    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.state import StateCodec


def encode_result(
    fold: StateFold, node_id: str, outcome: Completed
) -> dict[str, JsonValue] | None:
    """The stored form of a finished activation, or None when it has none."""
    data: dict[str, JsonValue] = {}
    try:
        if outcome.update is not None:
            data.update(_encode_update(fold, node_id, outcome.update))
    except StateError:
        return None
    if outcome.goto is not None:
        data["goto"] = [_encode_target(target) for target in outcome.goto]
    if outcome.route is not None:
        data["route"] = outcome.route
    if outcome.output is not UNSET:
        data["output"] = outcome.output
    if outcome.timer is not None:
        data["timer"] = _encode_timer(outcome.timer)
    if outcome.asks:
        data["asks"] = [encode_question(question) for question in outcome.asks]
    return data


def decode_result(
    fold: StateFold, data: Mapping[str, JsonValue], attempt_id: str
) -> Completed:
    """Read what `encode_result` wrote."""
    goto, timer = data.get("goto"), data.get("timer")
    return Completed(
        update=_decode_update(fold, data),
        goto=None if goto is None else tuple(_decode_target(item) for item in goto),
        route=data.get("route"),
        output=data.get("output", UNSET),
        timer=None if timer is None else _decode_timer(timer),
        asks=tuple(decode_question(item) for item in data.get("asks", ())),
        attempt_id=attempt_id,
    )


def _encode_update(fold: StateFold, node_id: str, update: Any) -> dict[str, JsonValue]:
    """An update by its fields, or for a reducer of the whole state as it was given."""
    codec = fold.update_codec or fold.codec
    if fold.reducer is None:
        fields = fold.check_update(node_id, update)
        return {"update": {k: _encode_field(codec, k, v) for k, v in fields.items()}}
    if type(update) is codec.model:
        values = codec.store(update, update.model_fields_set)
        if is_alike(codec.load(values), update):
            return {"model": values}
    if isinstance(update, BaseModel):
        raise SerializationError(f"the update of {node_id!r} has no stored form")
    return {"whole": _plain(f"the update of {node_id!r}", update)}


def _decode_update(fold: StateFold, data: Mapping[str, JsonValue]) -> Any:
    codec = fold.update_codec or fold.codec
    if "model" in data:
        return codec.load(data["model"])
    if "update" in data:
        return {k: _decode_field(codec, k, v) for k, v in data["update"].items()}
    return data.get("whole")


def _encode_field(codec: StateCodec, name: str, value: Any) -> JsonValue:
    if isinstance(value, Overwrite):
        return {"overwrite": _encode_field(codec, name, value.value)}
    typed = _typed(codec, name, value)
    if typed is not UNSET:
        return {"typed": typed}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((_plain(name, item) for item in value), key=encode)}
    return {"plain": _plain(name, value)}


def _typed(codec: StateCodec, name: str, value: Any) -> JsonValue:
    """The value in the field's form; UNSET if it would not come back alike from that.

    A tuple may come back as a list, for which every reducer takes it.
    """
    try:
        stored = codec.store_part(name, value)
        restored = codec.restore_part(name, stored)
    except StateError:
        return UNSET
    is_list = isinstance(value, tuple) and isinstance(restored, list)
    return stored if is_alike(restored, list(value) if is_list else value) else UNSET


def _plain(path: str, value: Any) -> JsonValue:
    plain = to_json_value(value, path)
    if not is_alike(plain, value):
        raise SerializationError(f"{path}: it would not come back alike", path=path)
    return plain


def _decode_field(codec: StateCodec, name: str, data: Mapping[str, Any]) -> Any:
    if "overwrite" in data:
        return Overwrite(_decode_field(codec, name, data["overwrite"]))
    if "set" in data:
        return set(data["set"])
    if "plain" in data:
        return data["plain"]
    return codec.restore_part(name, data["typed"])


def _encode_timer(timer: Timer) -> JsonValue:
    if isinstance(timer.until, timedelta):
        return {"seconds": timer.until.total_seconds()}
    return {"until": timer.until.isoformat()}


def _decode_timer(data: Mapping[str, Any]) -> Timer:
    if "seconds" in data:
        return Timer(timedelta(seconds=data["seconds"]))
    return Timer(datetime.fromisoformat(data["until"]))


def encode_question(question: Interrupt) -> JsonValue:
    """The stored form of a question; `read_result` made its parts JSON."""
    data = {
        name: getattr(question, name)
        for name in ("payload", "schema", "key", "id", "node")
    }
    if question.expires_in is not None:
        data["seconds"] = question.expires_in.total_seconds()
    if question.default is not UNSET:
        data["default"] = question.default
    return data


def decode_question(data: Mapping[str, Any]) -> Interrupt:
    """Read what `encode_question` wrote."""
    seconds = data.get("seconds")
    return Interrupt(
        data["payload"],
        schema=data["schema"],
        key=data["key"],
        id=data["id"],
        expires_in=None if seconds is None else timedelta(seconds=seconds),
        default=data.get("default", UNSET),
        node=data["node"],
    )


def _encode_target(target: Target) -> JsonValue:
    if isinstance(target, Send):
        return {"node": target.node, "arg": target.arg}
    return target


def _decode_target(data: Any) -> Target:
    return data if isinstance(data, str) else Send(data["node"], data["arg"])
