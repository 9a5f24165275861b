"""`manage.py stateknot_demo`: what it refuses, and a whole audit with `--once`."""

from __future__ import annotations

import contextlib
import csv
import re
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from django.core.management import CommandError, call_command

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 100


def test_demo_with_a_missing_input_starts_nothing(tmp_path: Path) -> None:
    """The error names the file and the way out; no database is touched."""
    with pytest.raises(CommandError, match=r"gone\.txt: cannot be read"):
        call_command("stateknot_demo", "--input", str(tmp_path / "gone.txt"))


def test_demo_with_a_malformed_input_names_file_with_line(tmp_path: Path) -> None:
    """The line that has to be mended."""
    file = tmp_path / "requirements.txt"
    file.write_text("Django==5.2\nwhat is this\n")
    with pytest.raises(CommandError, match=r"requirements\.txt:2: 'what is this'"):
        call_command("stateknot_demo", "--input", str(file))


def test_demo_with_an_input_without_packages_says_so(tmp_path: Path) -> None:
    """An audit of nothing is a mistake, not a good result."""
    file = tmp_path / "requirements.txt"
    file.write_text("# nothing yet\n")
    with pytest.raises(CommandError, match=r"requirements\.txt: names no package"):
        call_command("stateknot_demo", "--input", str(file))


def run_once(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run the demo to its end; returns exit code and output, checks for leftovers."""
    mark = {"AUDIT_TEST": uuid.uuid4().hex}
    with subprocess.Popen(
        [sys.executable, "manage.py", "stateknot_demo", "--once", *arguments],
        cwd=ROOT,
        env=environment | mark,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert list_marked(mark["AUDIT_TEST"]) == []
    return process.returncode, output


def list_marked(mark: str) -> list[psutil.Process]:
    """List living processes that inherited the mark, however they were orphaned."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("AUDIT_TEST") == mark:
                found.append(process)
    return found


@pytest.mark.django_db(transaction=True)
def test_demo_once_reports_on_this_environment(
    second_process_env: dict[str, str],
) -> None:
    """It ends with exit code 0, questions asked, a draft written, nothing left."""
    code, output = run_once(second_process_env)
    assert code == 0, output
    assert "No licence was found for house-terms" in output
    report = re.search(r"CSV: +(\S+)", output)
    assert report, output
    with Path(report[1]).open(newline="") as stream:
        rows = {row["package"]: row for row in csv.DictReader(stream)}
    assert rows["Django"]["licence"] == "BSD-3-Clause"
    assert rows["house-terms"]["verdict"] == "open"


@pytest.mark.django_db(transaction=True)
def test_demo_once_of_a_file_without_questions_completes(
    second_process_env: dict[str, str], tmp_path: Path
) -> None:
    """Packages that are not installed are in the report, and nobody is asked."""
    file = tmp_path / "requirements.txt"
    file.write_text("pydantic\nnot-installed-anywhere==1.0\n")
    code, output = run_once(second_process_env, "--input", str(file))
    assert code == 0, output
    assert "2 packages, 1 allowed, 1 not installed" in output
    assert "Open questions: 0" in output
