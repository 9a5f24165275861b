"""Installed packages on disk: which there are, and what their metadata says.

It lists packages by the names of their metadata directories, because a package whose
metadata cannot be read must still be listed. It decides nothing about licences; see
`licences.py`. Packages inside zip files and old `.egg` directories are not seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING

from project.audit.licences import LICENCE_FILE, PackageTexts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from email.message import Message

# Longest licence file read: five times the longest known licence text.
MAXIMUM_LICENCE_BYTES = 200_000
METADATA_DIRECTORY = re.compile(r"\.(dist|egg)-info$")
PYTHON_TAG = re.compile(r"-py\d[\d.]*$")


class UnreadableMetadataError(Exception):
    """Raised when a package's metadata is missing or damaged; says which file and how.

    You see it after a half-written installation or a disk fault. What to do: install
    the package again, or give its licence by hand.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One installed package: its name and version as installed, its metadata."""

    name: str
    version: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageMetadata:
    """A package's own name and version, and what it says about its licence."""

    name: str
    version: str
    texts: PackageTexts


def normalise_name(name: str) -> str:
    """Give the one spelling under which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def list_installed(search_path: Iterable[str | Path]) -> list[Installed]:
    """List the packages under the directories, by name; the first of a name counts.

    Entries that are no readable directory are passed over, as the interpreter does.
    """
    found: dict[str, Installed] = {}
    for directory in search_path:
        for path in _list_metadata(Path(directory)):
            package = _describe(path)
            found.setdefault(normalise_name(package.name), package)
    return [found[name] for name in sorted(found)]


def read_metadata(path: Path) -> PackageMetadata:
    """Read one package's metadata and licence files.

    Raises `UnreadableMetadataError` when the metadata file is missing, is not UTF-8 or
    has no name. Licence files that cannot be read count as not there.
    """
    message = _read_headers(path)
    if not message["Name"]:
        raise UnreadableMetadataError(f"{path}: the metadata has no Name field")
    return PackageMetadata(
        name=str(message["Name"]),
        version=str(message["Version"] or "unknown"),
        texts=PackageTexts(
            expression=str(message["License-Expression"] or ""),
            classifiers=tuple(map(str, message.get_all("Classifier", []))),
            stated=_shorten(str(message["License"] or "")),
            files=tuple(_read_licence_files(path, message)),
        ),
    )


def _list_metadata(directory: Path) -> list[Path]:
    try:
        return sorted(
            p for p in directory.iterdir() if METADATA_DIRECTORY.search(p.name)
        )
    except OSError:
        return []


def _describe(path: Path) -> Installed:
    stem = PYTHON_TAG.sub("", METADATA_DIRECTORY.sub("", path.name))
    name, separator, version = stem.rpartition("-")
    if not separator:
        name, version = stem, "unknown"
    return Installed(name=name, version=version, path=path)


def _read_headers(path: Path) -> Message:
    file = _find_metadata_file(path)
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableMetadataError(
            f"{file} is damaged: not UTF-8 at byte {error.start} ({error.reason})"
        ) from error
    except OSError as error:
        raise UnreadableMetadataError(f"{file}: {error.strerror}") from error
    return HeaderParser().parsestr(text)


def _find_metadata_file(path: Path) -> Path:
    if path.is_file():  # an .egg-info file is its own metadata
        return path
    return path / ("METADATA" if path.name.endswith(".dist-info") else "PKG-INFO")


def _read_licence_files(path: Path, message: Message) -> Iterator[tuple[str, str]]:
    for file in _list_licence_files(path, message):
        try:
            with file.open("rb") as stream:
                content = stream.read(MAXIMUM_LICENCE_BYTES)
        except OSError:
            continue
        # Old licence files are Latin-1; the phrases looked for are plain ASCII.
        yield (
            file.relative_to(path).as_posix(),
            content.decode("utf-8", errors="replace"),
        )


def _list_licence_files(path: Path, message: Message) -> list[Path]:
    """Find declared licence files, and undeclared ones that are named like one."""
    if not path.is_dir():
        return []
    declared = [
        candidate
        for name in map(str, message.get_all("License-File", []))
        for candidate in (path / "licenses" / name, path / name)
    ]
    named = [p for p in sorted(path.iterdir()) if LICENCE_FILE.search(p.name)]
    inside = [p for p in (*declared, *named) if _is_file_inside(p, path)]
    return list(dict.fromkeys(inside))


def _is_file_inside(file: Path, directory: Path) -> bool:
    # Metadata is the package's word: "License-File: ../../secret" must read nothing.
    return file.resolve().is_relative_to(directory.resolve()) and file.is_file()


def _shorten(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
