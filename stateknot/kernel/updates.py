"""Which fields of the state an update sets.

`UpdateReader` takes what a node returned as its update, in any of the admitted forms,
and gives the fields by name, in the order in which the model declares them. It folds
nothing; read `fold.py` for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import StateError
from stateknot.kernel.commands import Overwrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stateknot.kernel.state import StateCodec


class UpdateReader:
    """Reads updates of one graph; `update_codec` is for its update model, if any."""

    def __init__(self, codec: StateCodec, update_codec: StateCodec | None) -> None:
        self.codec, self.update_codec = codec, update_codec
        self._names = (update_codec or codec).names

    def read(self, node_id: str, update: Any) -> dict[str, Any]:
        """The fields that `update` sets.

        Raises StateError for a key that is no field, and for a value that the update
        model refuses.
        """
        if update is None:
            return {}
        given = self._given(node_id, update)
        if self.update_codec is None or type(update) is self.update_codec.model:
            return given
        return self._validated(self.update_codec, given)

    def _given(self, node_id: str, update: Any) -> dict[str, Any]:
        if isinstance(update, BaseModel):
            written = update.model_fields_set
            self._check_keys(f"node {node_id!r}", written, self._names)
            return {
                name: getattr(update, name) for name in self._names if name in written
            }
        if not isinstance(update, Mapping):
            raise StateError(
                f"node {node_id!r} returned a {type(update).__name__}; return None, a "
                "mapping of state fields, a model, a Command, an Interrupt or a Timer"
            )
        self._check_keys(f"node {node_id!r}", update, self._names)
        return {name: update[name] for name in self._names if name in update}

    def read_whole(self, result: Any) -> dict[str, Any]:
        """The fields that a reducer of the whole state gave.

        Raises StateError for what is neither the state nor a mapping of its fields.
        """
        names = self.codec.names
        if isinstance(result, self.codec.model):
            return {name: getattr(result, name) for name in names}
        if not isinstance(result, Mapping):
            raise StateError(
                f"the reducer returned a {type(result).__name__}; return the state, or "
                "a mapping of the fields that changed"
            )
        self._check_keys("the reducer", result, names)
        return {name: result[name] for name in names if name in result}

    def _check_keys(self, who: str, keys: Iterable[Any], names: Sequence[str]) -> None:
        unknown = sorted(str(key) for key in keys if key not in names)
        if unknown:
            raise StateError(
                f"{who} returned unknown field{'s' * (len(unknown) > 1)} "
                f"{', '.join(map(repr, unknown))}; the state has {', '.join(names)}",
                path=unknown[0],
            )

    def _validated(self, codec: StateCodec, given: dict[str, Any]) -> dict[str, Any]:
        """Let the update model validate the values, those to overwrite with as well."""
        values = {name: _bare(value) for name, value in given.items()}
        valid = codec.validate(values)
        return {
            name: _like(given.get(name), getattr(valid, name))
            for name in self._names
            if name in valid.model_fields_set
        }


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Overwrite) else value


def _like(given: Any, value: Any) -> Any:
    return Overwrite(value) if isinstance(given, Overwrite) else value
