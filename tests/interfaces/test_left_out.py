"""A test that cannot run is named with its reason, and fails in CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import left_out

if TYPE_CHECKING:
    from pathlib import Path


def _skip(nodeid: str, reason: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=nodeid,
        location=("x.py", 1, "test"),
        keywords={},
        outcome="skipped",
        longrepr=("x.py", 1, f"Skipped: {reason}"),
        when="setup",
    )


def test_skip_in_ci_fails_with_its_reason() -> None:
    report = _skip("a", "no browser")
    left_out.fail_if_left_out(report)
    assert report.failed
    assert "no browser" in str(report.longrepr)


def test_expected_failure_in_ci_stays_one() -> None:
    report = _skip("a", "known")
    report.wasxfail = "known"
    left_out.fail_if_left_out(report)
    assert report.skipped


def test_summary_groups_tests_by_reason() -> None:
    reports = [_skip("b", "no browser"), _skip("a", "no browser"), _skip("c", "other")]
    assert left_out.describe(reports) == [
        "left out (2): no browser\n  a\n  b",
        "left out (1): other\n  c",
    ]


def test_named_chromium_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o700)
    monkeypatch.setenv("CHROMIUM", str(browser))
    assert left_out.find_chromium() == str(browser)


def test_named_chromium_that_is_gone_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong CHROMIUM is an error to hear of, not a reason to take another browser."""
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "gone"))
    assert left_out.find_chromium() is None


@pytest.mark.parametrize(
    ("value", "answer"), [("true", True), ("", False), ("0", False)]
)
def test_ci_is_told_by_its_variable(
    value: str, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", value)
    assert left_out.in_ci() is answer
