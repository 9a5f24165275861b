"""The report's row and files: written twice they are the same, and safe to open."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from project.audit.models import AuditReport
from project.audit.report import render_csv, write_report
from project.audit.state import Audit, Finding, Recorded


def audit_of(**values: Any) -> Audit:
    findings = [
        Finding(name="mine", version="1", licence="MIT", strategy="classifiers"),
        Finding(name="theirs", version="2", strategy="none", evidence="nothing said"),
    ]
    return Audit(findings=findings, **values)


@pytest.fixture
def directory(tmp_path: Path, settings: Any) -> Path:
    settings.AUDIT_REPORT_DIR = tmp_path / "reports"
    return tmp_path / "reports"


@pytest.mark.django_db
def test_report_with_open_questions_is_a_draft(directory: Path) -> None:
    """What is known is written before anybody has answered."""
    report = write_report(audit_of(), run_id="r1", thread_id="t1")
    assert (report.status, report.open_questions) == ("draft", 1)
    assert report.by_verdict == {"allowed": 1, "open": 1}
    with Path(report.csv).open(newline="") as stream:
        rows = {row["package"]: row for row in csv.DictReader(stream)}
    assert (rows["mine"]["licence"], rows["mine"]["verdict"]) == ("MIT", "allowed")
    assert rows["theirs"]["evidence"] == "nothing said"
    assert {file.name for file in directory.iterdir()} == {
        "audit-r1.csv",
        "audit-r1.json",
    }


@pytest.mark.django_db
def test_report_written_again_replaces_row_and_files(directory: Path) -> None:
    """A node that writes it may run twice; a later one makes the draft final."""
    write_report(audit_of(), run_id="r1", thread_id="t1")
    write_report(audit_of(), run_id="r1", thread_id="t1")
    decision = Recorded(decision="reject", licence="LicenseRef-Own", note="no")
    decided = audit_of(decisions={"package:theirs": decision})
    report = write_report(decided, run_id="r1", thread_id="t1")
    row = AuditReport.objects.get()
    assert (row.run_id, row.status, row.open_questions) == ("r1", "final", 0)
    document = json.loads(Path(report.json_file).read_text())
    assert document["status"] == "final"
    assert document["packages"] == row.rows
    assert document["packages"][1]["note"] == "no"
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_csv_cell_that_a_spreadsheet_would_run_is_defused(start: str) -> None:
    """Package authors choose these texts."""
    row = dict.fromkeys(
        ("package", "version", "licence", "verdict", "strategy", "evidence"), ""
    )
    text = render_csv([{**row, "note": f"{start}cmd()"}])
    assert next(csv.DictReader(text.splitlines()))["note"] == f"'{start}cmd()"


def test_verdicts_of_a_report_stand_in_one_order() -> None:
    """PostgreSQL hands a JSON object back in an order of its own."""
    report = AuditReport(by_verdict={"open": 1, "not installed": 3, "allowed": 2})
    assert report.verdicts == "2 allowed, 1 open, 3 not installed"
