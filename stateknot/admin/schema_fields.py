"""Form fields from a flat JSON Schema: text, yes or no, numbers, choices.

`plan_fields` gives None for anything deeper; then the answer is typed as JSON. Whether
an answer fits is decided by the whole schema when it is given, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.html import escape
from django.utils.translation import gettext as _

from stateknot.kernel.vocabulary import UNSET, JsonValue, Unset

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]
_DEEPEST_REFERENCE = 8
_LONG_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerField:
    """A property of an answer and how it is asked for."""

    schema: Schema
    is_required: bool
    is_nullable: bool

    @property
    def default(self) -> JsonValue | Unset:
        """What stands for an answer that is left empty; UNSET if nothing does."""
        if "default" in self.schema:
            return self.schema["default"]
        return None if self.is_nullable else UNSET

    def form_field(self, name: str) -> forms.Field:
        """The form field, labelled and described as the schema says."""
        default = self.default
        # Django marks help texts as safe; this one is the graph author's text.
        options: dict[str, Any] = {
            "label": self.schema.get("title") or name,
            "help_text": escape(self.schema.get("description", "")),
            "required": self.is_required and not self.is_nullable,
        }
        if default is not UNSET and default is not None:
            options["initial"] = default
        return _make_field(self.schema, options)


def plan_fields(schema: Mapping[str, Any]) -> dict[str, AnswerField] | None:
    """The fields of an answer, by property; the whole answer if it is a single value.

    The single value's field is called "". None where the schema is not flat.
    """
    root = _resolve(dict(schema), schema)
    if root is None:
        return None
    if root.get("type") != "object":
        only = _plan_field(root, schema, is_required=True)
        return None if only is None else {"": only}
    if root.get("additionalProperties") or not root.get("properties"):
        return None
    required = set(root.get("required", ()))
    fields = {}
    for name, part in root["properties"].items():
        field = _plan_field(part, schema, is_required=name in required)
        if field is None:
            return None
        fields[name] = field
    return fields


def _plan_field(
    part: Any, root: Mapping[str, Any], *, is_required: bool
) -> AnswerField | None:
    resolved = _resolve(part, root)
    if resolved is None:
        return None
    options = resolved.get("anyOf") or resolved.get("oneOf")
    is_nullable = False
    if options:
        bare = [item for item in options if item != {"type": "null"}]
        is_nullable = len(bare) < len(options)
        inner = _resolve(bare[0], root) if len(bare) == 1 else None
        if inner is None:
            return None
        outer = {k: v for k, v in resolved.items() if k not in ("anyOf", "oneOf")}
        resolved = {**inner, **outer}
    if not _is_scalar(resolved):
        return None
    return AnswerField(
        schema=resolved, is_required=is_required, is_nullable=is_nullable
    )


def _is_scalar(schema: Schema) -> bool:
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return all(isinstance(v, str | int | float | bool) for v in values)
    return schema.get("type") in ("string", "boolean", "integer", "number")


def _resolve(part: Any, root: Mapping[str, Any]) -> Schema | None:
    """A schema with its local reference, or its only `allOf`, put in place."""
    for _depth in range(_DEEPEST_REFERENCE):
        if not isinstance(part, dict):
            return None
        rest = {k: v for k, v in part.items() if k not in ("$ref", "allOf")}
        if "$ref" in part:
            target = _find(part["$ref"], root)
        elif len(part.get("allOf", ())) == 1:
            target = part["allOf"][0]
        else:
            return part
        if not isinstance(target, dict):
            return None
        part = {**target, **rest}
    return None


def _find(reference: Any, root: Mapping[str, Any]) -> Any:
    found: Any = root
    path = str(reference).removeprefix("#/")
    for key in path.split("/"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _make_field(schema: Schema, options: dict[str, Any]) -> forms.Field:
    if "enum" in schema or "const" in schema:
        return _choice_field(schema.get("enum", [schema.get("const")]), options)
    match schema["type"]:
        case "boolean":
            return _choice_field([True, False], options)
        case "integer":
            return forms.IntegerField(**_bounds(schema), **options)
        case "number":
            return forms.FloatField(**_bounds(schema), **options)
        case _:
            return _text_field(schema, options)


def _choice_field(values: list[Any], options: dict[str, Any]) -> forms.Field:
    names = {True: _("Yes"), False: _("No")}
    keys = {str(index): value for index, value in enumerate(values)}
    choices = [
        (key, names[value] if isinstance(value, bool) else str(value))
        for key, value in keys.items()
    ]
    initial = options.pop("initial", UNSET)
    chosen = [key for key, value in keys.items() if value == initial]
    return forms.TypedChoiceField(
        choices=[("", "—"), *choices],
        coerce=keys.__getitem__,
        empty_value="",
        initial=chosen[0] if chosen else "",
        **options,
    )


def _bounds(schema: Schema) -> dict[str, Any]:
    bounds = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _text_field(schema: Schema, options: dict[str, Any]) -> forms.Field:
    longest = schema.get("maxLength")
    widget: Any = forms.TextInput
    if longest is not None and longest > _LONG_TEXT:
        widget = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(
        max_length=longest, min_length=schema.get("minLength"), widget=widget, **options
    )
