"""A graph's state between python and storage: validate, dump, restore, copy.

`StateCodec` is made once per compiled graph. It owns what "comes back equal" means: a
field's value is dumped in pydantic's JSON mode, checked against the value profile, read
back, and refused when it differs. It knows no reducers (see `fold.py`) and no storage.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pydantic
from pydantic import BaseModel, create_model

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Secret
from stateknot.kernel.limits import MAXIMUM_VALUE_BYTES
from stateknot.kernel.profile import check_profile, check_size, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.vocabulary import JsonValue

ModelT = TypeVar("ModelT", bound=BaseModel)
_ATOMIC = (str, int, float, bool, bytes, type(None))
_BY_NAME: Any = {"by_alias": True, "by_name": True}
MASK = "********"
_DECORATORS = (
    "validators",
    "field_validators",
    "root_validators",
    "field_serializers",
    "model_serializers",
    "model_validators",
)


def copy_value(value: Any) -> Any:
    """A copy that shares nothing mutable with `value`.

    Faster than `copy.deepcopy` on JSON-like values, which is what states mostly hold.
    """
    kind = type(value)
    if kind in _ATOMIC:
        return value
    if kind is list:
        return [item if type(item) in _ATOMIC else copy_value(item) for item in value]
    if kind is dict:
        return {key: copy_value(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return copy_model(value)
    return copy.deepcopy(value)


def copy_model(value: ModelT) -> ModelT:
    """A copy of a model instance that shares nothing mutable with it."""
    return value.model_copy(
        update={name: copy_value(item) for name, item in value.__dict__.items()}
    )


def describe_errors(error: pydantic.ValidationError) -> tuple[str, str]:
    """The path of the first problem, and a sentence that names every problem."""
    problems = error.errors(include_url=False, include_input=True)
    parts = [
        f"{_path(item['loc'])}: {item['msg']} (got {_shown(item.get('input'))})"
        for item in problems[:8]
    ]
    if len(problems) > 8:
        parts.append(f"and {len(problems) - 8} more")
    return _path(problems[0]["loc"]), "; ".join(parts)


def _path(location: Iterable[Any]) -> str:
    return ".".join(str(part) for part in location) or "the state"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class StateCodec:
    """Validates, dumps and restores the values of one state model."""

    def __init__(
        self, model: type[BaseModel], maximum_bytes: int = MAXIMUM_VALUE_BYTES
    ) -> None:
        self.model = model
        self.maximum_bytes = maximum_bytes
        self.names = tuple(model.model_fields)
        self.secrets = frozenset(
            name
            for name, info in model.model_fields.items()
            if any(item is Secret or isinstance(item, Secret) for item in info.metadata)
        )
        decorators = model.__pydantic_decorators__
        self.is_plain = not any(getattr(decorators, kind) for kind in _DECORATORS)
        self._parts: dict[str, type[BaseModel]] = {}
        self._unordered: dict[str, bool] = {}

    def validate(self, value: Any) -> BaseModel:
        """The state that `value` (a model instance or a mapping) stands for.

        Raises StateError naming each field that does not fit.
        """
        if isinstance(value, BaseModel):
            value = {name: getattr(value, name) for name in type(value).model_fields}
        try:
            return self.model.model_validate(value, **_BY_NAME)
        except pydantic.ValidationError as error:
            path, text = describe_errors(error)
            raise StateError(text, path=path) from error

    def load(self, values: Mapping[str, JsonValue]) -> BaseModel:
        """The state whose stored values these are; absent fields take their defaults.

        Raises StateError when the model no longer admits them.
        """
        try:
            return self.model.model_validate_json(encode(dict(values)), **_BY_NAME)
        except pydantic.ValidationError as error:
            path, text = describe_errors(error)
            raise StateError(f"the stored state: {text}", path=path) from error

    def dump(self, state: BaseModel, names: Iterable[str]) -> dict[str, JsonValue]:
        """The JSON values of the named fields, with sets in a stable order."""
        wanted = set(names)
        try:
            dumped = state.__pydantic_serializer__.to_python(
                state, mode="json", include=wanted, by_alias=False, warnings=False
            )
        except Exception as error:
            raise SerializationError(
                f"{', '.join(sorted(wanted))}: {error}", path=min(wanted, default="")
            ) from error
        values = cast("dict[str, JsonValue]", dumped)
        for name in values:
            if self._holds_sets(name):
                values[name] = _sort_sets(getattr(state, name), values[name])
        return values

    def store(self, state: BaseModel, names: Iterable[str]) -> dict[str, JsonValue]:
        """`dump`, checked: profile, size, and that each value comes back equal.

        Raises SerializationError with the path of what was refused.
        """
        values = self.dump(state, names)
        for name, value in values.items():
            check_profile(value, name)
            check_size(encode(value), name, self.maximum_bytes)
        return values

    def restore(
        self, state: BaseModel, values: Mapping[str, JsonValue]
    ) -> dict[str, Any]:
        """The python values that stored `values` of `state`'s fields come back as.

        Raises SerializationError for a field that does not come back equal.
        """
        if self.is_plain:
            restored = {name: self._restore_part(name, values) for name in values}
        else:
            whole = self.load({**self.dump(state, self.names), **values})
            restored = {name: getattr(whole, name) for name in values}
        for name, value in restored.items():
            if value != getattr(state, name):
                raise SerializationError(
                    f"{name}: {_shown(getattr(state, name))} would come back as "
                    f"{_shown(value)}; declare the field's type so that it can be "
                    "stored, or return a JSON value",
                    path=name,
                )
        return restored

    def store_part(self, name: str, value: Any) -> JsonValue:
        """The checked JSON form of a value of one field, which need not be validated.

        Raises StateError when it has none of the field's type.
        """
        part = self._part(name)
        try:
            valid = part.model_validate({name: value}, **_BY_NAME)
        except pydantic.ValidationError as error:
            path, text = describe_errors(error)
            raise StateError(text, path=path) from error
        codec = StateCodec(part, self.maximum_bytes)
        stored = codec.store(valid, [name])
        codec.restore(valid, stored)
        return stored[name]

    def restore_part(self, name: str, value: JsonValue) -> Any:
        """The python value of what `store_part` gave."""
        return self._restore_part(name, {name: value})

    def mask(self, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """`values` with every secret field replaced by a mask."""
        return {k: MASK if k in self.secrets else v for k, v in values.items()}

    def _part(self, name: str) -> type[BaseModel]:
        """A model of the one field, so that a part is read back at a part's cost."""
        part = self._parts.get(name)
        if part is None:
            info = self.model.model_fields[name]
            fields: dict[str, Any] = {name: (info.annotation, info)}
            part = create_model(
                f"{self.model.__name__}_{name}",
                __config__=self.model.model_config,
                **fields,
            )
            self._parts[name] = part
        return part

    def _restore_part(self, name: str, values: Mapping[str, JsonValue]) -> Any:
        try:
            data = encode({name: values[name]})
            return getattr(self._part(name).model_validate_json(data, **_BY_NAME), name)
        except pydantic.ValidationError as error:
            path, text = describe_errors(error)
            raise SerializationError(
                f"{text}; the stored value could not be read back", path=path
            ) from error

    def _holds_sets(self, name: str) -> bool:
        found = self._unordered.get(name)
        if found is None:
            try:
                schema = repr(self._part(name).model_json_schema())
            except pydantic.errors.PydanticInvalidForJsonSchema:
                schema = "uniqueItems"
            found = self._unordered[name] = "uniqueItems" in schema
        return found


def _sort_sets(value: Any, dumped: JsonValue) -> JsonValue:
    """`dumped` with the items of every set in `value` sorted by their bytes.

    A set's iteration order depends on the process; what is stored must not.
    """
    if isinstance(value, (set, frozenset)):
        return sorted(dumped, key=encode)
    if isinstance(value, BaseModel) and isinstance(dumped, dict):
        return {k: _sort_sets(getattr(value, k, None), v) for k, v in dumped.items()}
    if isinstance(value, (list, tuple)) and isinstance(dumped, list):
        return [_sort_sets(a, b) for a, b in zip(value, dumped, strict=False)]
    if isinstance(value, dict) and isinstance(dumped, dict):
        pairs = zip(value.values(), dumped.items(), strict=False)
        return {key: _sort_sets(a, b) for a, (key, b) in pairs}
    return dumped
