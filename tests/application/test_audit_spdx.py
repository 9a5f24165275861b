"""Licence expressions: grammar, and what an allow-list leaves to be decided."""

from __future__ import annotations

import pytest

from project.audit.spdx import (
    MAXIMUM_DEPTH,
    ExpressionError,
    list_blockers,
    list_licences,
    parse_expression,
)


def blockers(text: str, allowed: list[str], refused: list[str] | None = None) -> object:
    found = list_blockers(parse_expression(text), allowed, refused or [])
    return None if found is None else [str(licence) for licence in found]


@pytest.mark.parametrize(
    "text",
    [
        "MIT",
        "MPL-2.0 AND (Apache-2.0 OR MIT)",
        "(Apache-2.0 AND MIT) OR GPL-2.0-only",
        "GPL-2.0-or-later WITH Classpath-exception-2.0",
        "LicenseRef-House-Terms",
        "GPL-2.0+",
    ],
)
def test_expression_written_back_is_the_same(text: str) -> None:
    """What was read is written as it came."""
    assert str(parse_expression(text)) == text


def test_or_binds_weaker_than_and() -> None:
    """`A OR B AND C` is `A OR (B AND C)`."""
    assert str(parse_expression("MIT OR ISC and Zlib")) == "MIT OR (ISC AND Zlib)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "missing before 'the end'"),
        ("MIT OR", "missing before 'the end'"),
        ("AND MIT", "missing before 'AND'"),
        ("MIT ISC", "'ISC' is one word too many"),
        ("(MIT", "closing bracket"),
        ("MIT)", "')' is one word too many"),
        ("MIT / ISC", "'/' does not belong"),
        ("see LICENSE file", "'LICENSE' is one word too many"),
        ("(" * (MAXIMUM_DEPTH + 1) + "MIT", "deeper than"),
    ],
)
def test_expression_malformed_is_refused_with_the_reason(
    text: str, reason: str
) -> None:
    """A text that is no expression is shown, with what is wrong."""
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert reason in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "allowed", "expected"),
    [
        ("MIT", ["MIT"], []),
        ("mit", ["MIT"], []),
        ("MIT", [], ["MIT"]),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", ["MIT"], ["MPL-2.0"]),
        ("GPL-3.0-only OR MIT", ["MIT"], []),
        ("GPL-3.0-only AND MIT AND GPL-3.0-only", ["MIT"], ["GPL-3.0-only"]),
        ("(A AND B) OR C", [], ["C"]),
        ("A OR B", [], ["A"]),
        ("GPL-2.0 WITH X-exception", ["GPL-2.0"], []),
        ("GPL-2.0 WITH X-exception", ["GPL-2.0 WITH X-exception"], []),
        ("GPL-2.0", ["GPL-2.0 WITH X-exception"], ["GPL-2.0"]),
    ],
)
def test_blockers_are_what_must_be_allowed_as_well(
    text: str, allowed: list[str], expected: list[str]
) -> None:
    """Of alternatives the cheapest counts, the first on a tie; cases do not matter."""
    assert blockers(text, allowed) == expected


def test_blockers_after_refusal_name_the_other_alternative() -> None:
    """A refused licence leaves what else may be chosen."""
    assert blockers("A OR B", [], refused=["A"]) == ["B"]


@pytest.mark.parametrize("text", ["A", "A AND B", "A OR (A AND B)"])
def test_blockers_with_every_way_refused_are_none(text: str) -> None:
    """Without the refused licence there is no way left."""
    assert blockers(text, ["B"], refused=["A"]) is None


def test_licences_are_listed_once_in_their_order() -> None:
    """Each licence of an expression once, as it comes."""
    found = list_licences(parse_expression("B AND (A OR B) AND C WITH D"))
    assert [str(licence) for licence in found] == ["B", "A", "C WITH D"]
