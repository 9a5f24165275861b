"""Licence expressions (SPDX): read, written back, held against an allow-list.

It knows the grammar and no list of licences: an unknown identifier is simply one that
nobody allowed. Pure. Read `licences.py` next, which finds the expressions.

Source: SPDX specification 2.3, annex D; PEP 639 for case-insensitive identifiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9][A-Za-z0-9.:+-]*)")
OPERATORS = frozenset({"AND", "OR", "WITH"})
# Deeper nesting than this is an attack on the parser's recursion, not a licence.
MAXIMUM_DEPTH = 20


class ExpressionError(ValueError):
    """Raised when a text is no licence expression; the message shows the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """One licence, with its exception if it has one (`WITH`)."""

    identifier: str
    exception: str = ""

    def __str__(self) -> str:
        return " WITH ".join(filter(None, (self.identifier, self.exception)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Licences that all apply (`AND`) or of which one may be chosen (`OR`)."""

    operator: Literal["AND", "OR"]
    parts: tuple[Licence | Combination, ...]

    def __str__(self) -> str:
        return f" {self.operator} ".join(
            str(part) if isinstance(part, Licence) else f"({part})"
            for part in self.parts
        )


Expression = Licence | Combination


class _Parser:
    """Recursive descent over one text: OR binds weakest, then AND, then WITH."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _split_tokens(text)
        self.position = 0
        self.depth = 0

    def parse(self) -> Expression:
        expression = self.combination("OR")
        if self.position < len(self.tokens):
            raise self.error(f"{self.tokens[self.position]!r} is one word too many")
        return expression

    def combination(self, operator: Literal["AND", "OR"]) -> Expression:
        parts = [self.operand(operator)]
        while self.accept(operator):
            parts.append(self.operand(operator))
        if len(parts) == 1:
            return parts[0]
        return Combination(operator=operator, parts=tuple(parts))

    def operand(self, operator: Literal["AND", "OR"]) -> Expression:
        return self.combination("AND") if operator == "OR" else self.single()

    def single(self) -> Expression:
        if self.accept("("):
            return self.group()
        identifier = self.identifier()
        exception = self.identifier() if self.accept("WITH") else ""
        return Licence(identifier=identifier, exception=exception)

    def group(self) -> Expression:
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise self.error(f"it nests deeper than {MAXIMUM_DEPTH} levels")
        inner = self.combination("OR")
        if not self.accept(")"):
            raise self.error("a closing bracket is missing")
        self.depth -= 1
        return inner

    def identifier(self) -> str:
        token = self.peek()
        if token in {"", "(", ")"} or token.upper() in OPERATORS:
            raise self.error(f"a licence is missing before {token or 'the end'!r}")
        self.position += 1
        return token

    def accept(self, wanted: str) -> bool:
        found = self.peek().upper() == wanted
        self.position += found
        return found

    def peek(self) -> str:
        return (*self.tokens, "")[self.position]

    def error(self, reason: str) -> ExpressionError:
        return ExpressionError(f"{self.text!r} is no licence expression: {reason}")


def parse_expression(text: str) -> Expression:
    """Read an expression such as `MPL-2.0 AND (Apache-2.0 OR MIT)`.

    Raises `ExpressionError` when it is none.
    """
    return _Parser(text).parse()


def list_licences(expression: Expression) -> tuple[Licence, ...]:
    """List the licences an expression names, each once, in its order."""
    if isinstance(expression, Licence):
        return (expression,)
    named = [licence for part in expression.parts for licence in list_licences(part)]
    return tuple(dict.fromkeys(named))


def list_blockers(
    expression: Expression, allowed: Collection[str], refused: Collection[str] = ()
) -> tuple[Licence, ...] | None:
    """Name the licences that would have to be allowed as well; empty when it is fine.

    Of alternatives, the one that needs the fewest counts; the first one on a tie. None
    when every way needs a refused licence.
    """
    return _blockers(expression, _fold(allowed), _fold(refused))


def _blockers(
    expression: Expression, allowed: set[str], refused: set[str]
) -> tuple[Licence, ...] | None:
    if isinstance(expression, Licence):
        if _is_among(expression, allowed):
            return ()
        return None if str(expression).casefold() in refused else (expression,)
    parts = [_blockers(part, allowed, refused) for part in expression.parts]
    possible = [part for part in parts if part is not None]
    if expression.operator == "OR":
        return min(possible, key=len, default=None)
    if len(possible) < len(parts):
        return None
    return tuple(dict.fromkeys(licence for part in possible for licence in part))


def _fold(identifiers: Collection[str]) -> set[str]:
    return {identifier.casefold() for identifier in identifiers}


def _is_among(licence: Licence, allowed: set[str]) -> bool:
    # An exception only ever grants more, so the plain licence being allowed is enough.
    return not allowed.isdisjoint(
        {licence.identifier.casefold(), str(licence).casefold()}
    )


def _split_tokens(text: str) -> list[str]:
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = TOKEN.match(stripped, position)
        if match is None:
            raise ExpressionError(
                f"{text!r} is no licence expression: "
                f"{stripped[position:].lstrip()[0]!r} does not belong in one"
            )
        tokens.append(match[1])
        position = match.end()
    return tokens
