"""Finding runs by what an operator has at hand: an id's beginning, an error's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEX = re.compile(r"[0-9a-f]{6,32}")
_DIGITS = 32


def match_id(term: str, column: str = "id") -> Q | None:
    """Rows whose id begins with `term`; None if it is no beginning of a UUID.

    A range, so that the primary key's index serves it on every database.
    """
    digits = term.lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        return None
    first = UUID(digits.ljust(_DIGITS, "0"))
    last = UUID(digits.ljust(_DIGITS, "f"))
    return Q(**{f"{column}__range": (first, last)})


def match_terms(text: str, texts: Iterable[str], ids: Iterable[str] = ("id",)) -> Q:
    """Rows in which every word of `text` is found, in one of the columns."""
    texts, ids = list(texts), list(ids)
    found = Q()
    for term in text.split():
        one = Q()
        for column in texts:
            one |= Q(**{f"{column}__icontains": term})
        for column in ids:
            one |= match_id(term, column) or Q()
        found &= one
    return found
