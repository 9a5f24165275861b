"""A file that a document or a docstring names in backticks exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import ROOT, tracked_files

if TYPE_CHECKING:
    from collections.abc import Collection

SPAN = re.compile(r"`([\w.][\w./-]*)`")
FILE = re.compile(r"[\w-]+\.(?:py|md|toml|txt|html|css|js|svg|yml|json)")


def find_missing_files(path: str, text: str, files: Collection[str]) -> list[str]:
    """Return the file names in backticks that are no file or folder of the tree.

    A path counts when its first part is a folder of the tree, a bare name when it looks
    like a file's; what a reader's own project holds is written otherwise.
    """
    known = _known(files)
    tops = {name.split("/")[0] for name in files if "/" in name}
    return [
        f"{path} names `{name}`"
        for name in SPAN.findall(text)
        if _is_file_name(name, tops) and name.rstrip("/") not in known
    ]


def _known(files: Collection[str]) -> set[str]:
    """Return every file, every folder, and every file's bare name."""
    folders = {str(parent) for name in files for parent in Path(name).parents}
    return {*files, *folders, *(Path(name).name for name in files)}


def _is_file_name(name: str, tops: Collection[str]) -> bool:
    top, slash, _ = name.partition("/")
    return top in tops if slash else bool(FILE.fullmatch(name))


def test_named_file_exists() -> None:
    files = set(tracked_files())
    assert [
        fault
        for path in sorted(files)
        if path.endswith((".md", ".py")) and not path.startswith("tests/architecture/")
        for fault in find_missing_files(path, (ROOT / path).read_text(), files)
    ] == []


TREE = {"README.md", "stateknot/kernel/fold.py"}


@pytest.mark.parametrize("name", ["stateknot/gone.py", "GONE.md", "stateknot/gone/"])
def test_missing_file_is_found(name: str) -> None:
    assert find_missing_files("x.md", f"read `{name}` next", TREE) != []


@pytest.mark.parametrize(
    "name", ["stateknot/kernel/fold.py", "stateknot/kernel/", "README.md", "fold.py"]
)
def test_present_file_is_accepted(name: str) -> None:
    assert find_missing_files("x.md", f"read `{name}` next", TREE) == []


@pytest.mark.parametrize("name", ["var/db", "graph.node", "a/b"])
def test_other_code_is_not_taken_for_a_file(name: str) -> None:
    assert find_missing_files("x.md", f"`{name}`", TREE) == []
