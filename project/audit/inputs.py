"""A requirements file as the audit's input: which packages it names.

It reads the subset of pip's format that names packages: `name==version` lines with
extras, markers and hashes, comments, `-r other.txt`. What would need a package index
or a build (paths, addresses, `-e`) is an error with file, line and the way out. It does
not know what is installed; see `packages.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from project.audit.packages import normalise_name

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIREMENT = re.compile(
    r"""^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)
    \s*(?:\[[A-Za-z0-9._,\s-]*\])?          # extras change nothing about the licence
    \s*\(?(?P<specifier>(?:(?:===|==|~=|!=|<=|>=|<|>)\s*[^\s,;()]+\s*,?\s*)*)\)?
    \s*(?:;\s*(?P<marker>.+))?$""",
    re.VERBOSE,
)
INCLUDE = re.compile(r"^(?:-r|--requirement)[\s=]*(?P<file>.+)$")
# Options that say where or how to install: they name no package.
SILENT_OPTION = re.compile(
    r"^(?:-i|-f|-c|--constraint|--index-url|--extra-index-url|--find-links"
    r"|--no-index|--pre|--prefer-binary|--no-binary|--only-binary|--trusted-host"
    r"|--require-hashes|--use-feature)(?:[\s=]|$)"
)
COMMENT = re.compile(r"(?:^|\s+)#.*$")
HASHES = re.compile(r"\s+--hash[=\s]\S+")


class InputFileError(Exception):
    """Raised when the input file is missing or malformed; says where and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One package the file names; `pin` is its exact version, or empty.

    `origin` is `file:line` of the first mention, `marker` its condition or empty.
    """

    name: str
    pin: str
    marker: str
    origin: str


def read_requirements(file: Path) -> list[Requirement]:
    """List the packages of the file and of the files it includes, by name.

    A package named twice counts once, by its first line. Raises `InputFileError`.
    """
    found: dict[str, Requirement] = {}
    for requirement in _read_file(file, including=()):
        found.setdefault(normalise_name(requirement.name), requirement)
    return [found[name] for name in sorted(found)]


def _read_file(file: Path, including: tuple[Path, ...]) -> Iterator[Requirement]:
    for number, line in _list_lines(_read_text(file, including)):
        origin = f"{file}:{number}"
        include = INCLUDE.match(line)
        if include:
            yield from _read_include(file, include["file"], origin, including)
        elif not SILENT_OPTION.match(line):
            yield _parse_requirement(line, origin)


def _read_include(
    file: Path, name: str, origin: str, including: tuple[Path, ...]
) -> Iterator[Requirement]:
    included = file.parent / name.strip().strip("\"'")
    chain = (*including, file.resolve())
    if included.resolve() in chain:
        raise InputFileError(
            f"{origin}: {included} includes itself; remove one -r line"
        )
    if not included.is_file():
        raise InputFileError(
            f"{origin}: the included file {included} does not exist; -r is relative to "
            "the file that says it. Correct the name or remove the line"
        )
    yield from _read_file(included, chain)


def _read_text(file: Path, including: tuple[Path, ...]) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{file}: not a text file in UTF-8 (byte {error.start}); give a "
            "requirements file with one name==version a line"
        ) from error
    except OSError as error:
        named = f" (included by {including[-1]})" if including else ""
        raise InputFileError(
            f"{file}: cannot be read{named}: {error.strerror}; give the path of a "
            "requirements file, or none to audit this environment"
        ) from error


def _list_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) without comments and blanks, continuations joined."""
    parts: list[str] = []
    first = 1
    for number, raw in enumerate(text.splitlines(), start=1):
        first = first if parts else number
        line = COMMENT.sub("", raw)
        parts.append(line.removesuffix("\\"))
        if line.endswith("\\"):
            continue
        joined = " ".join(parts).strip()
        parts = []
        if joined:
            yield first, joined
    if any(part.strip() for part in parts):
        yield first, " ".join(parts).strip()


def _parse_requirement(line: str, origin: str) -> Requirement:
    match = REQUIREMENT.match(HASHES.sub("", line).strip())
    if match is None:
        raise InputFileError(f"{origin}: {line!r} {_explain(line)}")
    specifier = match["specifier"].strip()
    pin = re.fullmatch(r"={2,3}\s*([^\s,*]+)", specifier)
    return Requirement(
        name=match["name"],
        pin=pin[1] if pin else "",
        marker=(match["marker"] or "").strip(),
        origin=origin,
    )


def _explain(line: str) -> str:
    if line.startswith(("-e", "--editable")) or "://" in line or "/" in line:
        return (
            "names a place, not a package; write name==version as it is installed, "
            "or remove the line"
        )
    if line.startswith("-"):
        return "is no option this audit knows; remove the line"
    return "is no requirement; write name==version, for example Django==5.2"
