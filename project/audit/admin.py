"""Reports in the admin: read only, with the packages as a table.

What a report says is decided in `review.py` and written by `report.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.utils.html import format_html, format_html_join

from project.audit.models import AuditReport
from project.audit.report import COLUMNS

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


@admin.register(AuditReport)
class AuditReportAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # none at run time
    """Lists reports; a report page shows every package with its verdict."""

    list_display = ("created_at", "status", "packages", "open_questions", "verdicts")
    list_filter = ("status",)
    search_fields = ("run_id", "thread_id")
    fields = (
        *("status", "verdicts", "open_questions", "created_at", "updated_at"),
        *("run_id", "thread_id", "csv_file", "json_file", "package_table"),
    )
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: only a run writes reports."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: AuditReport | None = None
    ) -> bool:
        """Refuse: a report is an outcome."""
        return False

    @admin.display(description="verdicts")
    def verdicts(self, report: AuditReport) -> str:
        """Show the counts as one line."""
        return ", ".join(f"{n} {verdict}" for verdict, n in report.by_verdict.items())

    @admin.display(description="packages")
    def package_table(self, report: AuditReport) -> SafeString:
        """Show the rows as a table."""
        header = format_html_join("", "<th scope=col>{}</th>", ((c,) for c in COLUMNS))
        body = format_html_join(
            "", "<tr>{}</tr>", ((_cells(row),) for row in report.rows)
        )
        return format_html(
            "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", header, body
        )


def _cells(row: dict[str, str]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((row[name],) for name in COLUMNS))
