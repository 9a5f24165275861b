"""Imports go down or sideways, never up (the floors of ARCHITECTURE.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import Import, Module, imports, modules

if TYPE_CHECKING:
    from collections.abc import Iterable

FLOORS = {
    0: {"kernel", "errors", "composition"},
    1: {"conf", "models", "storage", "migrations"},
    2: {"runtime", "registry"},
    3: {"services", "selectors"},
    4: {
        "admin",
        "api",
        "apps",
        "broker",
        "checks",
        "management",
        "pictures",
        "queue_checks",
        "tasks",
        "templatetags",
        "testing",
        "urls",
        "views",
    },
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names}
ROOF = 5  # what stands on top of the package: the project and the tests


def floor_of(name: str) -> int | None:
    """Return the floor of a dotted name; None for what is not of this repository.

    `stateknot` itself re-exports names of all floors, so it counts as the top one.
    """
    match name.split("."):
        case ["stateknot", part, *_] if part in FLOOR_OF:
            return FLOOR_OF[part]
        case ["stateknot", *_]:
            return max(FLOORS)
        case ["project" | "tests", *_]:
            return ROOF
        case _:
            return None


def find_upward_imports(sources: Iterable[Module]) -> list[str]:
    """Return the imports of a floor above the importing module's."""
    return [
        str(found)
        for module in sources
        for found in imports(module)
        if _goes_up(found, floor_of(module.name))
    ]


def _goes_up(found: Import, own: int | None) -> bool:
    target = floor_of(found.target)
    return own is not None and target is not None and target > own


def find_homeless(sources: Iterable[Module]) -> list[str]:
    """Return the modules directly under `stateknot/` that stand on no floor."""
    return [
        module.path
        for module in sources
        if module.name != "stateknot" and module.name.split(".")[1] not in FLOOR_OF
    ]


def test_module_imports_nothing_from_above() -> None:
    assert find_upward_imports(modules("stateknot")) == []


def test_module_stands_on_a_floor() -> None:
    """A new top-level module is given its floor in FLOORS, on purpose."""
    assert find_homeless(modules("stateknot")) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("stateknot/kernel/x.py", "from stateknot.models import Run"),
        ("stateknot/kernel/x.py", "from stateknot import START"),
        ("stateknot/errors/x.py", "def f():\n    from ..runtime import executor"),
        ("stateknot/models/x.py", "from stateknot.runtime.executor import drive"),
        ("stateknot/runtime/x.py", "from ..services.runs import start_run"),
        ("stateknot/selectors/x.py", "import stateknot.api"),
        ("stateknot/admin/x.py", "from project.audit import graphs"),
    ],
)
def test_import_from_above_is_found(path: str, source: str) -> None:
    assert len(find_upward_imports([Module(path, source)])) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("stateknot/kernel/x.py", "from stateknot.errors import GraphError"),
        ("stateknot/api/x.py", "from stateknot.admin import y"),
        ("stateknot/services/x.py", "from django.db import transaction"),
        ("stateknot/__init__.py", "from stateknot.runtime.graph import CompiledGraph"),
    ],
)
def test_import_from_below_or_beside_is_allowed(path: str, source: str) -> None:
    assert find_upward_imports([Module(path, source)]) == []


def test_module_without_floor_is_found() -> None:
    assert find_homeless([Module("stateknot/extras/x.py", "")]) != []
