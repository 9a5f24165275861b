"""The audit's outcome: one row, one CSV and one JSON file for each run.

Writing it again gives the same row and the same files, so a node that writes it may run
twice. Files are replaced whole, never seen half-written. What a verdict is stands in
`review.py`.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from project.audit.models import AuditReport
from project.audit.review import count_verdicts, judge_all, list_questions
from project.audit.state import Report

if TYPE_CHECKING:
    from project.audit.review import Judged
    from project.audit.state import Audit

COLUMNS = ("package", "version", "licence", "verdict", "strategy", "evidence", "note")
# A spreadsheet runs a cell that starts with one of these, and package authors choose
# the texts that end up in cells.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_report(audit: Audit, *, run_id: str, thread_id: str | None) -> Report:
    """Write the files and the row of a run, and say where they are.

    Idempotent: keyed by the run's id.
    """
    rows = [_make_row(judged) for judged in judge_all(audit)]
    counts = count_verdicts(judge_all(audit))
    questions = len(list_questions(audit))
    status = AuditReport.Status.DRAFT if questions else AuditReport.Status.FINAL
    directory = report_directory()
    csv_file = directory / f"audit-{run_id}.csv"
    json_file = directory / f"audit-{run_id}.json"
    document = {"run": run_id, "status": status.value, "by_verdict": counts}
    _replace(csv_file, render_csv(rows))
    _replace(json_file, render_json({**document, "packages": rows}))
    AuditReport.objects.update_or_create(
        run_id=run_id,
        defaults={
            "thread_id": thread_id or "",
            "status": status,
            "packages": len(rows),
            "open_questions": questions,
            "by_verdict": counts,
            "rows": rows,
            "csv_file": str(csv_file),
            "json_file": str(json_file),
        },
    )
    return Report(
        status=status.value,
        csv=str(csv_file),
        json_file=str(json_file),
        by_verdict=counts,
        open_questions=questions,
    )


def report_directory() -> Path:
    """Give the directory of the files: `AUDIT_REPORT_DIR`, or `VAR_DIR`/reports."""
    default = settings.VAR_DIR / "reports"
    return Path(getattr(settings, "AUDIT_REPORT_DIR", default))


def render_csv(rows: list[dict[str, str]]) -> str:
    """Write the rows as CSV with a header, safe to open in a spreadsheet."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: _defuse(value) for key, value in row.items()} for row in rows
    )
    return stream.getvalue()


def render_json(document: dict[str, object]) -> str:
    """Write the document as indented JSON."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _make_row(judged: Judged) -> dict[str, str]:
    finding = judged.finding
    return {
        "package": finding.name,
        "version": finding.version,
        "licence": judged.licence,
        "verdict": judged.verdict,
        "strategy": finding.strategy,
        "evidence": finding.evidence,
        "note": judged.note,
    }


def _defuse(value: str) -> str:
    return f"'{value}" if value.startswith(FORMULA_STARTS) else value


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two writers of one run from sharing a temporary file.
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
