"""The parameters of an address, told to the OpenAPI document from the query's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter

if TYPE_CHECKING:
    from stateknot.api.queries import Query


def query_parameters(model: type[Query]) -> list[OpenApiParameter]:
    """One optional query parameter for each field of `model`."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    return [
        OpenApiParameter(name, _plain(field, definitions), OpenApiParameter.QUERY)
        for name, field in schema["properties"].items()
    ]


def _plain(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The field's schema, without the null that stands for leaving it out."""
    kept = {k: v for k, v in field.items() if k not in ("title", "default", "anyOf")}
    for option in field.get("anyOf", ()):
        name = option.get("$ref", "").rpartition("/")[2]
        found = definitions.get(name, option)
        if found.get("type") != "null":
            kept.update({k: v for k, v in found.items() if k != "title"})
    if field.get("default") is not None:
        kept["default"] = field["default"]
    kept.pop("description", None)
    return kept
