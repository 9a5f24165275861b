"""No file names a package registry's host or a path of one person's machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import ROOT, tracked_files

if TYPE_CHECKING:
    from collections.abc import Iterator

# Written apart, so that this file does not break its own rule.
HOSTS = ("pypi" + ".org", "python" + "hosted.org", "npmjs" + ".org", "deb." + "debian")
HOMES = ("work", "root", "home", "Users")
FORBIDDEN = re.compile(
    "|".join(re.escape(host) for host in HOSTS)
    + rf"|(?<![\w.\-/])/(?:{'|'.join(HOMES)})/\w"
)


def find_forbidden(path: str, text: str) -> list[str]:
    """Return the lines that contain a forbidden host or path."""
    return [
        f"{path}:{number} has {match.group()!r}"
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := FORBIDDEN.search(line))
    ]


def _texts() -> Iterator[tuple[str, str]]:
    for path in tracked_files():
        data = (ROOT / path).read_bytes()
        if b"\0" not in data:
            yield path, data.decode(errors="replace")


def test_file_names_no_registry_or_private_path() -> None:
    assert [found for file in _texts() for found in find_forbidden(*file)] == []


@pytest.mark.parametrize("host", HOSTS)
def test_registry_host_is_found(host: str) -> None:
    assert find_forbidden("x.txt", f"--index-url https://{host}/simple") != []


@pytest.mark.parametrize("home", HOMES)
def test_private_path_is_found(home: str) -> None:
    assert find_forbidden("x.md", f"cd /{home}/shop") != []


@pytest.mark.parametrize("text", ["admin/home/page", "https://x.test/home/a", "/var/x"])
def test_other_path_is_allowed(text: str) -> None:
    assert find_forbidden("x.md", text) == []
