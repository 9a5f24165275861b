"""The how-to page about acting once runs as written."""

from __future__ import annotations

import pytest

from tests.acceptance.test_test_graphs_page import page_names

PAGE = "act-once.md"
TESTS = sorted(name for name in page_names(PAGE) if name.startswith("test_"))


@pytest.mark.django_db
@pytest.mark.parametrize("name", TESTS)
def test_example_of_the_page_passes(name: str) -> None:
    page_names(PAGE)[name]()


def test_page_has_an_example_of_each_kind() -> None:
    assert len(TESTS) == 2
