"""JSON that a person typed: read strictly, with errors that say where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import JsonValue


def parse_json(text: str) -> JsonValue:
    """The value that `text` writes.

    Raises ValidationError with line and column, and for what JSON readers disagree on:
    a key given twice (one would be lost), NaN and infinities.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise ValidationError(
            _("Not valid JSON at line %(line)d, column %(column)d: %(reason)s"),
            code="json",
            params={"line": error.lineno, "column": error.colno, "reason": error.msg},
        ) from error
    except RecursionError as error:
        raise ValidationError(_("The JSON is nested too deeply."), "json") from error
    except ValueError as error:
        raise ValidationError(
            _("Not valid JSON: %(reason)s"), code="json", params={"reason": str(error)}
        ) from error


def is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON; 1, 1.0 and true are not."""
    return _canonical(one) == _canonical(other)


def _canonical(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(_("the key “%s” stands twice in one object") % key)
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(_("%s is not a JSON number") % name)
