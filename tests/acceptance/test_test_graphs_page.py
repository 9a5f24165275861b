"""The how-to page about testing graphs runs as written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings

from stateknot.testing import CRASH_POINTS

PAGES = settings.BASE_DIR / "docs" / "how-to"
PAGE = PAGES / "test-graphs.md"


def page_names(page: str = PAGE.name) -> dict[str, Any]:
    """Run every block of the page, in one namespace; give what they define."""
    names: dict[str, Any] = {"__name__": "page"}
    text = (PAGES / page).read_text()
    pattern = r"^```python\n(.*?)^```$"
    for code in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
        compiled = compile(code, page, "exec", dont_inherit=True)
        exec(compiled, names)  # noqa: S102 - a page of ours
    return names


TESTS = sorted(name for name in page_names() if name.startswith("test_"))


@pytest.mark.parametrize("name", TESTS)
def test_example_of_the_page_passes(name: str) -> None:
    """DO-05: a retry, a wait of 30 days and a pause."""
    page_names()[name]()


def test_page_has_an_example_of_each_kind() -> None:
    assert len(TESTS) == 4


def test_page_names_every_crash_point() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    assert [point for point, _ in rows] == list(CRASH_POINTS)
    told = [text.startswith(CRASH_POINTS[point]) for point, text in rows]
    assert all(told)
