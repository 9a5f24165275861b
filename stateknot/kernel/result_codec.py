"""Pending results in JSON: finished work that waits for its fold.

A field's value is stored in the form of the state model's field, else in its general
JSON form, and only if it comes back equal. `encode_result` gives None for a result that
cannot be stored; such an activation runs again, which its attempt then says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from stateknot.errors import StateError
from stateknot.kernel.commands import Overwrite, Send
from stateknot.kernel.outcome import Completed, Target
from stateknot.kernel.profile import check_profile
from stateknot.kernel.vocabulary import UNSET, JsonValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.state import StateCodec


def encode_result(
    fold: StateFold, node_id: str, outcome: Completed
) -> dict[str, JsonValue] | None:
    """The stored form of a finished activation, or None when it has none."""
    data: dict[str, JsonValue] = {}
    try:
        if outcome.update is not None:
            fields = fold.check_update(node_id, outcome.update)
            codec = fold.update_codec or fold.codec
            data["update"] = {
                name: _encode_field(codec, name, value)
                for name, value in fields.items()
            }
    except (StateError, TypeError, ValueError):
        return None
    if outcome.goto is not None:
        data["goto"] = [_encode_target(target) for target in outcome.goto]
    if outcome.route is not None:
        data["route"] = outcome.route
    if outcome.output is not UNSET:
        data["output"] = outcome.output
    return data


def decode_result(
    fold: StateFold, data: Mapping[str, JsonValue], attempt_id: str
) -> Completed:
    """Read what `encode_result` wrote."""
    codec = fold.update_codec or fold.codec
    update = data.get("update")
    if update is not None:
        update = {name: _decode_field(codec, name, v) for name, v in update.items()}
    goto = data.get("goto")
    return Completed(
        update=update,
        goto=None if goto is None else tuple(_decode_target(item) for item in goto),
        route=data.get("route"),
        output=data.get("output", UNSET),
        attempt_id=attempt_id,
    )


def _encode_field(codec: StateCodec, name: str, value: Any) -> JsonValue:
    if isinstance(value, Overwrite):
        return {"overwrite": _encode_field(codec, name, value.value)}
    try:
        return {"typed": codec.store_part(name, value)}
    except StateError:
        plain = to_jsonable_python(value)
        check_profile(plain, name)
        if plain != value or isinstance(value, BaseModel):
            raise
        return {"plain": plain}


def _decode_field(codec: StateCodec, name: str, data: Mapping[str, Any]) -> Any:
    if "overwrite" in data:
        return Overwrite(_decode_field(codec, name, data["overwrite"]))
    if "plain" in data:
        return data["plain"]
    return codec.restore_part(name, data["typed"])


def _encode_target(target: Target) -> JsonValue:
    if isinstance(target, Send):
        return {"node": target.node, "arg": target.arg}
    return target


def _decode_target(data: Any) -> Target:
    return data if isinstance(data, str) else Send(data["node"], data["arg"])
