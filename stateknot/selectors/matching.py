"""Filters over columns that hold JSON, which compare the same on every database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from stateknot.errors import StateError
from stateknot.kernel.profile import check_profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    RowsT = TypeVar("RowsT", bound=QuerySet[Any])


def having_members(
    rows: RowsT, column: str, members: Iterable[tuple[str, str]]
) -> RowsT:
    """Rows whose JSON object in `column` has all these members, as name and text.

    Text matches the string and, where it is JSON, the value: `7` finds 7 and "7". A
    name is taken as it stands, whatever lookup it may look like.
    """
    for place, (name, text) in enumerate(members):
        alias = f"member_{place}"
        found = Q()
        for value in _readings(text):
            found |= Q(**{alias: value})
        rows = rows.alias(**{alias: KeyTransform(name, column)}).filter(found)
    return rows


def _readings(text: str) -> list[Any]:
    """The values that `text` may mean; lists and mappings are not looked for."""
    try:
        value = json.loads(text)
        check_profile(value, "")
    except (ValueError, StateError):
        return [text]
    is_plain = isinstance(value, (bool, int, float))
    return [text, value] if is_plain else [text]
