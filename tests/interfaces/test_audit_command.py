"""`manage.py stateknot_demo`: what it refuses, and a whole audit with `--once`."""

from __future__ import annotations

import contextlib
import csv
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command

from project.audit.models import AuditReport
from stateknot.selectors import get_run, get_state
from stateknot.services import resume_run, retry_run, update_state

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    with start_demo(environment, "--once", *arguments) as demo:
        output, _ = demo.communicate(timeout=LIMIT_SECONDS)
    return demo.returncode, output


@contextlib.contextmanager
def start_demo(
    environment: dict[str, str], *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    """Run the demo; it must have left no process behind when the block ends."""
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        [sys.executable, "manage.py", "stateknot_demo", *arguments],
        cwd=ROOT,
        env=environment | {"AUDIT_TEST": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        try:
            yield demo
            assert list_marked(mark) == []
        finally:
            demo.kill()


def read_to(demo: subprocess.Popen[str], end: str) -> str:
    """Read what the demo prints, to the line that holds `end`."""
    read = ""
    assert demo.stdout
    for line in demo.stdout:
        read += line
        if end in line:
            return read
    raise AssertionError(f"the demo ended without {end!r}: {read}")


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


@pytest.mark.django_db(transaction=True)
def test_demo_goes_from_failure_to_report_until_ctrl_c(
    second_process_env: dict[str, str],
) -> None:
    """Repaired and answered from outside, as the admin does; then ended by hand."""
    with start_demo(second_process_env) as demo:
        started = read_to(demo, "Ctrl-C ends the demo.")
        assert '"overrides": {"unreadable_demo": "MIT"}' in started
        run_id = re.search(r"/run/([0-9a-f-]+)/", started)
        assert run_id, started
        thread_id = get_run(run_id[1]).thread.key
        update_state(thread_id, {"overrides": {"unreadable_demo": "MIT"}})
        retry_run(thread_id)
        asked = read_to(demo, "Ctrl-C ends the demo.")
        assert "waiting for a person" in asked
        answer_all(thread_id)
        ended = read_to(demo, "Ctrl-C ends the demo.")
        report = AuditReport.objects.get()
        assert f"/admin/audit/auditreport/{report.pk}/change/" in ended
        assert (report.status, report.open_questions) == ("final", 0)
        demo.send_signal(signal.SIGINT)
        last, _ = demo.communicate(timeout=LIMIT_SECONDS)
    assert last.strip() == "Ended; no process is left."
    assert demo.returncode == 0


def answer_all(thread_id: str) -> None:
    """Accept whatever is asked; an accepted licence raises no further question."""
    snapshot = get_state(thread_id)
    assert snapshot
    for question in snapshot.pending_interrupts:
        resume_run(thread_id, {"decision": "accept"}, interrupt_id=question.id)


@pytest.mark.django_db(transaction=True)
def test_two_demos_on_one_database_leave_each_other_alone(
    second_process_env: dict[str, str],
) -> None:
    """The second takes another port, and the password of the first stays good."""
    with start_demo(second_process_env) as first:
        started = read_to(first, "Ctrl-C ends the demo.")
        code, output = run_once(second_process_env)
        assert code == 0, output
        assert "as the demo that is up already has printed" in output
        password = re.search(r"Password  (\S+)", started)
        assert password
        assert authenticate(username="operator", password=password[1])
        assert re.findall(r"Admin +(\S+)", started) != re.findall(
            r"Admin +(\S+)", output
        )
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=LIMIT_SECONDS)
    assert first.returncode == 0
