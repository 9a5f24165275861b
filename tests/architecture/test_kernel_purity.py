"""The kernel decides from values alone: nothing it does depends on where it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import Module, imports, modules, references
from tests.architecture.test_floors import floor_of

if TYPE_CHECKING:
    from collections.abc import Iterable

LIBRARIES = {"pydantic", "pydantic_core", "orjson", "rfc8785", "stateknot"}
IMPURE_MODULES = {
    "glob": "a file",
    "io": "a file",
    "logging": "a logger",
    "os": "the environment",
    "pathlib": "a file",
    "random": "a random source",
    "secrets": "a random source",
    "shutil": "a file",
    "socket": "the network",
    "sqlite3": "a database",
    "subprocess": "a process",
    "tempfile": "a file",
    "time": "the clock",
    "urllib": "the network",
}
IMPURE_NAMES = {
    "date.today": "the clock",
    "datetime.now": "the clock",
    "datetime.today": "the clock",
    "datetime.utcnow": "the clock",
    "input": "the terminal",
    "open": "a file",
    "print": "the terminal",
    "uuid.uuid1": "the clock",
    "uuid.uuid4": "a random source",
    "uuid1": "the clock",
    "uuid4": "a random source",
}


def find_impure_imports(sources: Iterable[Module]) -> list[str]:
    """Return imports of what is neither standard, pure nor allowed."""
    return [
        f"{found} ({IMPURE_MODULES.get(top, 'not allowed in the kernel')})"
        for module in sources
        for found in imports(module)
        if not _is_pure(top := found.target.split(".")[0])
    ]


def _is_pure(top: str) -> bool:
    standard = top in sys.stdlib_module_names and top not in IMPURE_MODULES
    return standard or top in LIBRARIES


def find_impure_names(sources: Iterable[Module]) -> list[str]:
    """Return uses of the clock, a random source, a file or the terminal.

    Handing `datetime.now` on counts as calling it; an injected clock has another owner.
    """
    return [
        f"{module.path}:{line} uses {name} ({IMPURE_NAMES[name]})"
        for module in sources
        for name, line in references(module)
        if name in IMPURE_NAMES
    ]


def _ground_floor() -> list[Module]:
    return [module for module in modules("stateknot") if floor_of(module.name) == 0]


def test_kernel_imports_only_pure_libraries() -> None:
    assert find_impure_imports(_ground_floor()) == []


def test_kernel_uses_nothing_impure() -> None:
    assert find_impure_names(_ground_floor()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from django.db import models",
        "import time",
        "def f():\n    from os import environ",
        "import logging",
        "import uuid_utils",
    ],
)
def test_impure_import_is_found(source: str) -> None:
    assert find_impure_imports([Module("stateknot/kernel/x.py", source)]) != []


@pytest.mark.parametrize(
    "source",
    ["datetime.now(UTC)", "dt.datetime.now()", "f(now=datetime.now)", "open('x')"],
)
def test_impure_name_is_found(source: str) -> None:
    assert find_impure_names([Module("stateknot/kernel/x.py", source)]) != []


def test_pure_import_is_allowed() -> None:
    source = "import hashlib\nfrom datetime import timedelta\nimport pydantic"
    assert find_impure_imports([Module("stateknot/kernel/x.py", source)]) == []


def test_injected_clock_is_allowed() -> None:
    assert find_impure_names([Module("stateknot/kernel/x.py", "self.now()")]) == []
