"""What happens to a test that cannot run here: said at the end, or a failure in CI.

A test about one database is not left out on the other, it is not collected there
(`only_on`). Knows nothing of StateKnot; `tests/conftest.py` is its only user.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_CHROMIUM = (
    "no Chromium found: install it (Debian: apt-get install chromium) or name it with "
    "CHROMIUM=/path/to/chromium"
)


def in_ci() -> bool:
    """Tell whether this is CI, where nothing may be left out."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def find_chromium() -> str | None:
    """Return the path of the browser to test with, or None."""
    named = os.environ.get("CHROMIUM")
    found = (shutil.which(name) for name in ((named,) if named else CHROMIUM_NAMES))
    return next((path for path in found if path), None)


def fail_if_left_out(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that keeps the reason (an xfail stays one)."""
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"left out, which CI does not accept: {reason_of(report)}"


def reason_of(report: Any) -> str:
    """Return why a skipped test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return str(reason or report.longrepr).removeprefix("Skipped: ")


def describe(reports: list[Any]) -> list[str]:
    """Return one line per reason, with the tests that it left out."""
    tests: dict[str, list[str]] = {}
    for report in reports:
        tests.setdefault(reason_of(report), []).append(report.nodeid)
    return [
        f"left out ({len(ids)}): {reason}\n  " + "\n  ".join(sorted(ids))
        for reason, ids in sorted(tests.items())
    ]
