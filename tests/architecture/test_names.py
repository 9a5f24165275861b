"""A module is named after what it does; a drawer for anything is not a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import modules

if TYPE_CHECKING:
    from collections.abc import Iterable

STEMS = ("util", "helper", "common", "base", "manager", "misc")
FORBIDDEN = {*STEMS, *(f"{stem}s" for stem in STEMS)}


def find_drawers(paths: Iterable[str]) -> list[str]:
    """Return the paths of which a folder or the file has a name that says nothing."""
    return [
        path
        for path in paths
        if FORBIDDEN & {part.lower() for part in Path(path).with_suffix("").parts}
    ]


def test_module_has_a_name_that_says_something() -> None:
    paths = [module.path for module in modules("stateknot", "project", "tests")]
    assert find_drawers(paths) == []


@pytest.mark.parametrize(
    "path", ["stateknot/utils.py", "tests/helpers/rows.py", "project/Base.py"]
)
def test_drawer_is_found(path: str) -> None:
    assert find_drawers([path]) == [path]


def test_longer_name_is_allowed() -> None:
    assert find_drawers(["stateknot/kernel/base_record.py"]) == []
