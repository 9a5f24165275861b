"""Reads this repository's own source: files, modules and the names they import.

Knows no rule; each rule stands in a `test_*.py` beside this file, as a function from
sources to the places that break it, together with a source that does.
"""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """One Python file, by its path from the root and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def name(self) -> str:
        parts = Path(self.path).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        is_package = Path(self.path).name == "__init__.py"
        return self.name if is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """A dotted name that a module imports, and the line that does."""

    module: Module
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module.path}:{self.line} imports {self.target}"


@cache
def tracked_files() -> tuple[str, ...]:
    """Return the paths of all files of the repository, new ones too, ignored ones not.

    Sorted, relative to the root, with forward slashes.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = sorted(path for path in listed.stdout.split("\0") if path)
    return tuple(path for path in paths if (ROOT / path).is_file())


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Return the Python modules under the folders, without generated migrations."""
    return tuple(
        Module(path, (ROOT / path).read_text())
        for path in tracked_files()
        if path.endswith(".py")
        and path.startswith(tuple(f"{folder}/" for folder in folders))
        and "migrations" not in Path(path).parts
    )


def imports(module: Module) -> Iterator[Import]:
    """Yield every import, wherever it stands; `from a import b` gives `a.b`."""
    for node in ast.walk(module.tree):
        for target in _targets(node, module):
            yield Import(module, target, node.lineno)  # type: ignore[attr-defined]


def _targets(node: ast.AST, module: Module) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=source, names=names, level=level):
            origin = _origin(source, level, module)
            return [f"{origin}.{alias.name}" for alias in names]
        case ast.Call(args=[ast.Constant(value=str(target)), *_]):
            return [target] if _called_name(node) == "import_module" else []
        case _:
            return []


def _origin(source: str | None, level: int, module: Module) -> str:
    if level == 0:
        return source or ""
    parents = module.package.split(".")
    kept = parents[: len(parents) - level + 1]
    return ".".join([*kept, source] if source else kept)


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def references(module: Module) -> Iterator[tuple[str, int]]:
    """Yield every name that is read, the last two parts of it, and its line.

    `datetime.datetime.now` gives `datetime.now` and its parts; a bare name itself.
    """
    for node in ast.walk(module.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name, node.lineno
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner)):
                yield f"{owner}.{node.attr}", node.lineno
