"""States and results as people may see them: secret fields are masks.

The admin, the API and the commands all ask here, so that none shows what another hides.
See Note [Unknown secrets].

Note [Unknown secrets]
~~~~~~~~~~~~~~~~~~~~~~
Which fields are secret is declared in the state model, so only a process with the
graph's code knows. Elsewhere a reader cannot tell a token from a title, and showing
everything would make a missing import a leak; so every field is masked there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.kernel.once import without_mark
from stateknot.kernel.state import MASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.state import StateCodec
    from stateknot.kernel.vocabulary import JsonValue


def show_values(
    values: Mapping[str, JsonValue], codec: StateCodec | None
) -> dict[str, JsonValue]:
    """`values` in the order of the model, secrets masked."""
    if codec is None:
        return dict.fromkeys(values, MASK)
    ordered = {name: values[name] for name in codec.names if name in values}
    return codec.mask({**ordered, **values})


def show_result(result: JsonValue, codec: StateCodec | None) -> JsonValue:
    """A pending result with its update as plain fields. See `result_codec.py`."""
    if isinstance(result, dict):
        result = without_mark(result)
    if not isinstance(result, dict) or "update" not in result:
        return result
    update = {name: _bare(value) for name, value in result["update"].items()}
    return {**result, "update": show_values(update, codec)}


def _bare(stored: Any) -> JsonValue:
    while isinstance(stored, dict) and set(stored) & {"overwrite", "typed", "plain"}:
        _, stored = stored.popitem() if len(stored) == 1 else ("", None)
    return stored
