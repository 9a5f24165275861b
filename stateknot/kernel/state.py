"""A graph's state between python and storage: validate, dump, restore.

`StateCodec` is made once per compiled graph. It owns what "comes back alike" means: a
field's value is dumped in pydantic's JSON mode, checked against the value profile, read
back, and refused when it differs. It knows no reducers (see `fold.py`) and no storage.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pydantic
from pydantic import BaseModel, create_model

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Secret
from stateknot.kernel.likeness import is_alike
from stateknot.kernel.limits import MAXIMUM_VALUE_BYTES
from stateknot.kernel.profile import check_profile, check_size, encode
from stateknot.kernel.state_model import aliases_of, marks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stateknot.kernel.vocabulary import JsonValue

# Authors and callers may use aliases; what is stored is by field name only, since an
# alias may be the name of a field further in.
_GIVEN: Any = {"by_alias": True, "by_name": True}
_STORED: Any = {"by_alias": False, "by_name": True}
_DECORATORS = (
    "validators",
    "field_validators",
    "root_validators",
    "field_serializers",
    "model_serializers",
    "model_validators",
)
_SHOWN_PROBLEMS = 8
MASK = "********"


def describe_errors(
    error: pydantic.ValidationError, secrets: frozenset[str] = frozenset()
) -> tuple[str, str]:
    """The path of the first problem, and a sentence that names every problem.

    Nothing of the fields in `secrets` is told but which rule was broken.
    """
    problems = error.errors(include_url=False, include_input=True)
    parts = [_problem(item, secrets) for item in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        parts.append(f"and {len(problems) - _SHOWN_PROBLEMS} more")
    return _path(problems[0]["loc"]), "; ".join(parts)


def _problem(item: Any, secrets: frozenset[str]) -> str:
    place = item["loc"]
    if place and place[0] in secrets:
        return f"{_path(place)}: {item['type']} (the value is secret)"
    if not place and secrets:
        return f"{_path(place)}: {item['msg']}"
    return f"{_path(place)}: {item['msg']} (got {_shown(item.get('input'))})"


def _path(location: Iterable[Any]) -> str:
    return ".".join(str(part) for part in location) or "the state"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value's own `__repr__` may raise anything
        return f"a {type(value).__name__}"
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
            if any(
                item is Secret or isinstance(item, Secret) for item in marks_of(info)
            )
        )
        decorators = model.__pydantic_decorators__
        self.is_plain = model.model_post_init is BaseModel.model_post_init and not any(
            getattr(decorators, kind) for kind in _DECORATORS
        )
        self._renamed = {
            alias: name
            for name, info in model.model_fields.items()
            for alias in aliases_of(info)
        }
        self._parts: dict[str, type[BaseModel]] = {}
        self._part_codecs: dict[str, StateCodec] = {}
        self._unordered: dict[str, bool] = {}

    def validate(self, value: Any) -> BaseModel:
        """The state that `value` (a model instance or a mapping) stands for.

        Raises StateError naming each field that does not fit.
        """
        if isinstance(value, BaseModel):
            value = {name: getattr(value, name) for name in type(value).model_fields}
        with self._refusing():
            return self.model.model_validate(value, **_GIVEN)

    def load(self, values: Mapping[str, JsonValue]) -> BaseModel:
        """The state whose stored values these are; absent fields take their defaults.

        A field that was stored under another name is found by its validation alias.
        Raises StateError when the model no longer admits them.
        """
        current = {self._renamed.get(name, name): values[name] for name in values}
        current |= {name: values[name] for name in self.names if name in values}
        with self._refusing("the stored state: "):
            return self.model.model_validate_json(encode(current), **_STORED)

    def dump(self, state: BaseModel, names: Iterable[str]) -> dict[str, JsonValue]:
        """The JSON values of the named fields, with sets in a stable order.

        Raises SerializationError for what has no JSON form.
        """
        wanted = {name for name in self.names if name in set(names)}
        try:
            dumped = state.__pydantic_serializer__.to_python(
                state,
                mode="json",
                include=wanted,
                by_alias=False,
                round_trip=True,
                warnings=False,
            )
            self._check_names(wanted, dumped)
            for name in dumped:
                if self._holds_sets(name):
                    dumped[name] = _sort_sets(getattr(state, name), dumped[name])
        except SerializationError:
            raise
        except Exception as error:
            raise SerializationError(
                f"{', '.join(sorted(wanted))}: {error}", path=min(wanted, default="")
            ) from error
        return cast("dict[str, JsonValue]", dumped)

    def _check_names(self, wanted: set[str], dumped: Any) -> None:
        found = set(dumped) if isinstance(dumped, dict) else set()
        if found != wanted:
            path = min(wanted ^ found, key=str)
            raise SerializationError(
                f"{path}: the serializer of {self.model.__name__} does not give the "
                "fields of the state by name; put it on a field or a nested model",
                path=str(path),
            )

    def store(self, state: BaseModel, names: Iterable[str]) -> dict[str, JsonValue]:
        """`dump`, checked against the value profile and for size.

        Raises SerializationError with the path of what was refused.
        """
        values = self.dump(state, names)
        for name, value in values.items():
            try:
                check_profile(value, name)
            except SerializationError as error:
                if name not in self.secrets:
                    raise
                text = f"{name}: the (secret) value is outside the value profile"
                raise SerializationError(text, path=error.path) from None
            check_size(encode(value), name, self.maximum_bytes)
        return values

    def restore(
        self, state: BaseModel, values: Mapping[str, JsonValue]
    ) -> dict[str, Any]:
        """The python values that stored `values` of `state`'s fields come back as.

        Raises StateError for a field that does not come back alike.
        """
        if self.is_plain:
            restored = {name: self._restore_part(name, values) for name in values}
        else:
            whole = self.load({**self.dump(state, self.names), **values})
            restored = {name: getattr(whole, name) for name in values}
        for name, value in restored.items():
            if not is_alike(value, getattr(state, name)):
                raise self._changed(name, getattr(state, name), value)
        return restored

    def _changed(self, name: str, before: Any, after: Any) -> SerializationError:
        is_secret = name in self.secrets
        shown = (MASK, MASK) if is_secret else (_shown(before), _shown(after))
        return SerializationError(
            f"{name}: {shown[0]} would come back as {shown[1]}; declare the field's "
            "type so that it can be stored, or return a JSON value",
            path=name,
        )

    def store_part(self, name: str, value: Any) -> JsonValue:
        """The checked JSON form of a value of one field, which need not be validated.

        Raises StateError when it has none of the field's type.
        """
        part = self._part(name)
        with self._refusing():
            valid = part.model_validate({name: value}, **_GIVEN)
        codec = self._part_codecs.get(name)
        if codec is None:
            codec = self._part_codecs[name] = StateCodec(part, self.maximum_bytes)
        stored = codec.store(valid, [name])
        codec.restore(valid, stored)
        return stored[name]

    def restore_part(self, name: str, value: JsonValue) -> Any:
        """The python value of what `store_part` gave."""
        return self._restore_part(name, {name: value})

    def mask(self, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """`values` with every secret field replaced by a mask."""
        return {k: MASK if k in self.secrets else v for k, v in values.items()}

    @contextmanager
    def _refusing(self, where: str = "", what: str = "") -> Iterator[None]:
        """Turn what pydantic or the author's validators raise into a StateError.

        With secret fields the cause is left out: its text shows their values.
        """
        try:
            yield
        except pydantic.ValidationError as error:
            path, text = describe_errors(error, self.secrets)
            cause = None if self.secrets else error
            raise StateError(f"{where}{text}{what}", path=path) from cause
        except Exception as error:
            text = f"{where}the code of {self.model.__name__} raised "
            text += f"{type(error).__name__}: {error}"
            raise StateError(text) from error

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
        with self._refusing(what="; the stored value could not be read back"):
            data = encode({name: values[name]})
            return getattr(self._part(name).model_validate_json(data, **_STORED), name)

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
    if isinstance(value, (set, frozenset)) and isinstance(dumped, list):
        return sorted(dumped, key=encode)
    if isinstance(value, BaseModel) and isinstance(dumped, dict):
        return {k: _sort_sets(getattr(value, k, None), v) for k, v in dumped.items()}
    if isinstance(value, (list, tuple)) and isinstance(dumped, list):
        return [_sort_sets(a, b) for a, b in zip(value, dumped, strict=False)]
    if isinstance(value, dict) and isinstance(dumped, dict):
        pairs = zip(value.values(), dumped.items(), strict=False)
        return {key: _sort_sets(a, b) for a, (key, b) in pairs}
    return dumped
