"""Functions and modules stay as small as CONTRIBUTING.md asks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import Module, modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_FUNCTION = 60  # lines, signature and docstring included, decorators not
LONG_FUNCTION = 45
SHARE_OF_LONG = 0.05
LONGEST_MODULE = 400
TREES = ("stateknot", "project", "tests", "bench")


def function_lengths(sources: Iterable[Module]) -> Iterator[tuple[int, str]]:
    """Yield the lines of each function, nested ones too, and where it stands."""
    for module in sources:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{module.path}:{node.lineno} {node.name}"
                yield (node.end_lineno or node.lineno) - node.lineno + 1, place


def find_long_functions(sources: Iterable[Module]) -> list[str]:
    return [
        f"{place} has {length} lines, at most {LONGEST_FUNCTION}"
        for length, place in function_lengths(sources)
        if length > LONGEST_FUNCTION
    ]


def share_of_long(sources: Iterable[Module]) -> float:
    """Return the share of functions that are not under LONG_FUNCTION lines."""
    lengths = [length for length, _ in function_lengths(sources)]
    return sum(length >= LONG_FUNCTION for length in lengths) / max(len(lengths), 1)


def find_long_modules(sources: Iterable[Module]) -> list[str]:
    return [
        f"{module.path} has {lines} lines, at most {LONGEST_MODULE}"
        for module in sources
        if (lines := len(module.text.splitlines())) > LONGEST_MODULE
    ]


@pytest.mark.parametrize("tree", TREES)
def test_function_is_not_too_long(tree: str) -> None:
    assert find_long_functions(modules(tree)) == []


@pytest.mark.parametrize("tree", TREES)
def test_functions_are_mostly_short(tree: str) -> None:
    assert share_of_long(modules(tree)) <= SHARE_OF_LONG


@pytest.mark.parametrize("tree", TREES)
def test_module_is_not_too_long(tree: str) -> None:
    assert find_long_modules(modules(tree)) == []


def _function_of(lines: int) -> Module:
    body = "        pass\n" * (lines - 1)
    return Module("x.py", f"class A:\n    async def f(self):\n{body}")


def test_function_over_the_limit_is_found() -> None:
    assert find_long_functions([_function_of(LONGEST_FUNCTION)]) == []
    assert find_long_functions([_function_of(LONGEST_FUNCTION + 1)]) != []


def test_share_counts_from_the_long_length_on() -> None:
    short, long = _function_of(LONG_FUNCTION - 1), _function_of(LONG_FUNCTION)
    assert share_of_long([short]) == 0
    assert share_of_long([short, long]) == 0.5


def test_module_over_the_limit_is_found() -> None:
    assert find_long_modules([Module("x.py", "pass\n" * LONGEST_MODULE)]) == []
    assert find_long_modules([Module("x.py", "pass\n" * (LONGEST_MODULE + 1))]) != []
