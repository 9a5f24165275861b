"""Collect every broken rule of a definition, then raise them as one error.

The first issue collected is the one the error is; the order of the checks is therefore
part of the contract (spec/composition.md, section 1.5). This module knows no rule.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, TypeVar, cast

from stateknot.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

V = TypeVar("V")
T = TypeVar("T")

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: object) -> str:
    """The value as a message shows it: quoted, and short whatever was given."""
    return _SHORT.repr(value)


class IssueCollector:
    """A list of issues that is raised as one error, or not at all."""

    def __init__(self) -> None:
        self.issues: list[GraphError] = []

    def add(self, owner: str, kind: str, message: str) -> None:
        self.issues.append(GraphError(message, kind=kind, owner=owner))

    def extend(self, issues: list[GraphError]) -> None:
        self.issues.extend(issues)

    def attempt(self, read: Callable[[V], T], value: V) -> T:
        """Read `value`, keeping the issues instead of raising them.

        What comes back after a failure is None; `raise_any` ends the work before
        anybody can use it.
        """
        try:
            return read(value)
        except GraphError as error:
            self.issues.extend(error.issues)
            return cast("T", None)

    def raise_any(self) -> None:
        """Raise the first issue, carrying all of them, if there is one."""
        if self.issues:
            first = self.issues[0]
            first.issues = tuple(self.issues)
            raise first
