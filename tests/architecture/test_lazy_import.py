"""A graph can be written and run in memory by a program that has no Django set up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT

PUBLIC = """
    START END GraphBuilder CompiledGraph NodeContext Command Send Interrupt Timer
    GraphInput ResumeTarget GraphExecution StateSnapshot RetryPolicy
    DurabilityMode Overwrite RetryableError MemoryCheckpointer
    append union minimum maximum add last_value
"""


def packages_loaded_by(code: str) -> set[str]:
    """Run the code in a fresh interpreter and return the top-level packages loaded."""
    report = "import sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import stateknot",
        f"from stateknot import {', '.join(PUBLIC.split())}",
        "import stateknot; [getattr(stateknot, name) for name in stateknot.__all__]",
        "import stateknot.errors",
        "import stateknot.testing",
    ],
    ids=["package", "contract", "all", "errors", "testing"],
)
def test_public_import_loads_no_django(code: str) -> None:
    loaded = packages_loaded_by(code)
    assert "stateknot" in loaded
    assert "django" not in loaded


def test_import_of_django_is_seen() -> None:
    assert "django" in packages_loaded_by("import django.conf")
