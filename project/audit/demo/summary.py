"""The last words of a demo: what the report says, in a dozen lines.

It reads the report's row and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from project.audit.demo.progress import count
from project.audit.review import NOT_INSTALLED

if TYPE_CHECKING:
    from project.audit.models import AuditReport

LICENCES_SHOWN = 12


def summarise(report: AuditReport) -> list[str]:
    """Say counts by verdict and licence, open questions, and where the files are."""
    packages = count(report.packages, "package")
    return [
        f"Report ({report.get_status_display()}): {packages}, {report.verdicts}",
        *(f"  {number:4}  {name}" for name, number in _count_licences(report)),
        f"Open questions: {report.open_questions}",
        f"CSV:  {report.csv_file}",
        f"JSON: {report.json_file}",
    ]


def _count_licences(report: AuditReport) -> list[tuple[str, int]]:
    installed = [row for row in report.rows if row["verdict"] != NOT_INSTALLED]
    counts = Counter(row["licence"] or "unknown" for row in installed)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ranked[:LICENCES_SHOWN], ranked[LICENCES_SHOWN:]
    if rest:
        shown.append((f"of {len(rest)} other licences", sum(n for _name, n in rest)))
    return shown
