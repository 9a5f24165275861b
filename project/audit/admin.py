"""Reports in the admin: read only, with the packages as a table.

What a report says is decided in `review.py` and written by `report.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from project.audit.models import AuditReport

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


# The strategy stands in the evidence as well.
SHOWN = ("package", "version", "licence", "verdict", "note", "evidence")


@admin.register(AuditReport)
class AuditReportAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # none at run time
    """Lists reports; a report page shows every package with its verdict."""

    list_display = ("created_at", "status", "packages", "verdicts")
    list_filter = ("status",)
    search_fields = ("run_id", "thread_id")
    fields = (
        *("status", "verdicts", "open_questions", "created_at", "updated_at"),
        *("run", "thread_id", "csv_file", "json_file", "package_table"),
    )
    readonly_fields = fields

    class Media:
        """One style sheet: the policy refuses inline style."""

        css = {"all": ["audit/report.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: only a run writes reports."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: AuditReport | None = None
    ) -> bool:
        """Refuse: a report is an outcome."""
        return False

    @admin.display(description="run")
    def run(self, report: AuditReport) -> SafeString:
        """Lead to the page of the run that wrote the report."""
        page = reverse("admin:stateknot_run_change", args=[report.run_id])
        return format_html('<a href="{}">{}</a>', page, report.run_id)

    @admin.display(description="packages")
    def package_table(self, report: AuditReport) -> SafeString:
        """Show the rows as a table."""
        header = format_html_join("", "<th scope=col>{}</th>", ((c,) for c in SHOWN))
        body = format_html_join(
            "", "<tr>{}</tr>", ((_cells(row),) for row in report.rows)
        )
        return format_html(
            '<div class="audit-packages" role="region" aria-label="packages" '
            'tabindex="0"><table><thead><tr>{}</tr></thead>'
            "<tbody>{}</tbody></table></div>",
            header,
            body,
        )


def _cells(row: dict[str, str]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((row[name],) for name in SHOWN))
