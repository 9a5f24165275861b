"""What differs between two states: rows of a path, the value before and after.

Objects are compared key by key and lists item by item, so that one changed number in a
large state is one row. Bounded: what is left out is counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from stateknot.admin.json_text import is_same
from stateknot.kernel.state import MASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stateknot.kernel.vocabulary import JsonValue

MOST_ROWS = 100
LONGEST_VALUE = 300
DEEPEST = 20
_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place that differs. `before` and `after` are JSON, cut where they are long;
    None where there was or is nothing."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The first rows, and whether there are more."""

    rows: list[Difference]
    has_more: bool


def compare_states(
    before: Mapping[str, JsonValue],
    after: Mapping[str, JsonValue],
    shown_before: Mapping[str, JsonValue],
    shown_after: Mapping[str, JsonValue],
) -> Differences:
    """What differs between two states, told in the form that may be shown.

    A field whose masks are the same while its values differ has one row of masks.
    """
    rows: list[Difference] = []
    for name in [*after, *(name for name in before if name not in after)]:
        one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if one is not _ABSENT and other is not _ABSENT and is_same(one, other):
            continue
        shown = (shown_before.get(name, _ABSENT), shown_after.get(name, _ABSENT))
        found = list(islice(_walk(name, *shown, 0), MOST_ROWS + 1 - len(rows)))
        rows += found or [Difference(path=name, before=MASK, after=MASK)]
        if len(rows) > MOST_ROWS:
            break
    return Differences(rows=rows[:MOST_ROWS], has_more=len(rows) > MOST_ROWS)


def _walk(path: str, one: Any, other: Any, depth: int) -> Iterator[Difference]:
    if depth < DEEPEST and isinstance(one, dict) and isinstance(other, dict):
        for key in [*other, *(key for key in one if key not in other)]:
            pair = (one.get(key, _ABSENT), other.get(key, _ABSENT))
            yield from _walk(f"{path}.{key}", *pair, depth + 1)
    elif depth < DEEPEST and isinstance(one, list) and isinstance(other, list):
        for place in range(max(len(one), len(other))):
            pair = (_at(one, place), _at(other, place))
            yield from _walk(f"{path}[{place}]", *pair, depth + 1)
    elif one is not other and (_ABSENT in (one, other) or not is_same(one, other)):
        yield Difference(path=path, before=_text(one), after=_text(other))


def _at(items: list[Any], place: int) -> Any:
    return items[place] if place < len(items) else _ABSENT


def _text(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return text
    more = _("%(n)d more characters") % {"n": len(text) - LONGEST_VALUE}
    return f"{text[:LONGEST_VALUE]}… ({more})"
