"""The schema document of a state model, and its digest.

Owns what counts as a change of the contract: types, constraints, names, defaults. A
docstring, a title, a class name or the order in which something was written does not.
It knows nothing of graphs; `definition_parts.py` has the reference it makes.

Note [Normalised schema document]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The document is pydantic's JSON Schema, of which only what admits or refuses a value is
kept. Annotations go; shared definitions are named by the order in which the sorted
document first uses them; sets written as lists (`required`, `enum`) are sorted; an
`allOf` of one is that one. A union keeps the order it was written in, since pydantic
prefers an earlier member. Golden digests in the tests guard all this against a pydantic
that writes the same contract differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from stateknot.errors import GraphError
from stateknot.kernel.canonical import canonical_bytes, digest_of
from stateknot.kernel.definition_parts import SchemaReference
from stateknot.kernel.limits import MAXIMUM_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel
    from pydantic_core.core_schema import DecimalSchema

    from stateknot.kernel.vocabulary import JsonValue

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_PREFIX: Final = "#/$defs/"
_ANNOTATIONS: Final = frozenset(
    {"title", "description", "examples", "deprecated", "discriminator", "$comment"}
)
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_BOUNDS: Final = frozenset(
    {"max_digits", "decimal_places", "multiple_of", "le", "ge", "lt", "gt"}
)
_VALUES: Final = frozenset({"default", "const"})
_SETS: Final = frozenset({"required", "enum"})


class _Generator(GenerateJsonSchema):
    """pydantic's generator without its warnings and without what its releases changed.

    Defaults that have no JSON form are left out silently. A Decimal is the text it is
    stored as, with its bounds: the pattern that pydantic gives came with one release
    and went with another.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def decimal_schema(self, schema: DecimalSchema) -> dict[str, JsonValue]:
        given = {key: str(value) for key, value in schema.items() if key in _BOUNDS}
        return {"type": "string", "format": "decimal", **given}


def schema_document(model: type[BaseModel], *, id: str) -> dict[str, JsonValue]:
    """The normalised document of `model` under the URI `id`.

    Raises GraphError `SchemaUnavailable` for a model with a field that has no JSON
    Schema, such as an arbitrary class. Source: Note [Normalised schema document].
    """
    try:
        raw = model.model_json_schema(schema_generator=_Generator, by_alias=True)
    except PydanticInvalidForJsonSchema as error:
        raise GraphError(
            f"state model {model.__name__} has no JSON Schema: {error.message}; use "
            "types that JSON can hold, or annotate the field with WithJsonSchema",
            kind="SchemaUnavailable",
            owner="Schema",
        ) from error
    return {"$schema": DIALECT, "$id": id, **_Normaliser(raw).document()}


def schema_reference(
    model: type[BaseModel], *, id: str, version: str
) -> SchemaReference:
    """Name the schema of `model` by the digest of its normalised document."""
    digest = digest_of(canonical_bytes(schema_document(model, id=id)))
    return SchemaReference(id=id, version=version, digest=digest)


class _Normaliser:
    """One walk over one raw document, numbering definitions as it meets them."""

    def __init__(self, raw: dict[str, JsonValue]) -> None:
        self._raw = raw
        self._numbers: dict[str, str] = {}
        self._queue: list[str] = []

    def document(self) -> dict[str, JsonValue]:
        root = {key: value for key, value in self._raw.items() if key != "$defs"}
        document = self._schema(root)
        definitions = {}
        # Grows while it is read: a definition may use others.
        for name in self._queue:
            definitions[self._numbers[name]] = self._schema(self._raw["$defs"][name])
        return {**document, "$defs": definitions} if definitions else document

    def _schema(self, node: JsonValue) -> JsonValue:
        """Normalise one schema; booleans and the like stand for themselves."""
        if isinstance(node, list):
            return [self._schema(item) for item in node]
        if not isinstance(node, dict):
            return _number(node)
        kept = {key: node[key] for key in sorted(node) if key not in _ANNOTATIONS}
        only = kept.get("allOf")
        if isinstance(only, list) and len(only) == 1:
            del kept["allOf"]
            return self._schema({**only[0], **kept})
        return {key: self._keyword(key)(value) for key, value in kept.items()}

    def _keyword(self, key: str) -> Callable[[JsonValue], JsonValue]:
        if key == "$ref":
            return self._reference
        if key in _NAMED:
            return self._schemas_by_name
        if key in _SETS:
            return _sorted_values
        return _value if key in _VALUES else self._schema

    def _schemas_by_name(self, schemas: JsonValue) -> JsonValue:
        return {name: self._schema(schemas[name]) for name in sorted(schemas)}

    def _reference(self, target: JsonValue) -> JsonValue:
        name = str(target).removeprefix(_PREFIX)
        if name not in self._numbers:
            self._numbers[name] = str(len(self._numbers))
            self._queue.append(name)
        return _PREFIX + self._numbers[name]


def _sorted_values(values: JsonValue) -> JsonValue:
    return sorted((_value(value) for value in values), key=canonical_bytes)


def _value(value: JsonValue) -> JsonValue:
    """A JSON value in the author's words (a default, a constant), numbers made safe."""
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    return _number(value)


def _number(value: JsonValue) -> JsonValue:
    """Write an integer that canonical JSON cannot hold as its decimal text.

    A bound such as 2^63-1 is a fair constraint, and only the digest reads it here.
    """
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_integer and abs(value) > MAXIMUM_INTEGER else value
