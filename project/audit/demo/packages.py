"""Two real packages on disk that make an audit interesting, whatever is installed.

One has terms of its own, which no strategy knows: a question is always asked. One was
cut off while it was being installed: its inspection fails until somebody repairs it.
Both are written anew at each start, so a second demo begins like the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

OWN_TERMS = """\
House Terms, version 3

You may run this program in your own house. Guests may watch. Whoever improves it shows
the improvement to the neighbours before the end of the month, or bakes a cake.
"""
OWN_METADATA = """\
Metadata-Version: 2.1
Name: house-terms
Version: 3.0
Summary: A package whose author wrote the licence at the kitchen table
License: House Terms
"""
# The file ends within a character of two bytes, as after a full disk.
CUT_METADATA = (
    b"Metadata-Version: 2.1\nName: unreadable-demo\nVersion: 1.0\nSummary: Ol\xc3"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPackage:
    """A package as installed, and the directory to search for it."""

    name: str
    directory: Path
    metadata: Path


def make_own_terms(root: Path) -> DemoPackage:
    """Write the package with terms of its own; a readable one."""
    package = _place(root, "house-terms", "3.0")
    package.metadata.write_text(OWN_METADATA, encoding="utf-8")
    (package.metadata.parent / "LICENSE").write_text(OWN_TERMS, encoding="utf-8")
    return package


def make_unreadable(root: Path) -> DemoPackage:
    """Write the package whose metadata ends in the middle of a character."""
    package = _place(root, "unreadable_demo", "1.0")
    package.metadata.write_bytes(CUT_METADATA)
    return package


def _place(root: Path, name: str, version: str) -> DemoPackage:
    directory = root / name
    # As installers do: the directory's name is the distribution's, without dashes.
    information = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    return DemoPackage(
        name=name, directory=directory, metadata=information / "METADATA"
    )
