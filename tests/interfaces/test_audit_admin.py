"""Reports in the admin: readable, escaped, and nothing to change."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from project.audit.models import AuditReport

ROW = {
    "package": "<script>alert(1)</script>",
    "version": "1.0",
    "licence": "MIT",
    "verdict": "allowed",
    "strategy": "classifiers",
    "evidence": "classifier",
    "note": "",
}


@pytest.fixture
def report(db: None) -> AuditReport:
    return AuditReport.objects.create(
        run_id="r1",
        thread_id="t1",
        status="final",
        packages=1,
        open_questions=0,
        by_verdict={"allowed": 1},
        rows=[ROW],
        csv_file="/reports/audit-r1.csv",
        json_file="/reports/audit-r1.json",
    )


def test_report_page_shows_packages_escaped(
    admin_client: Client, report: AuditReport
) -> None:
    """Package authors choose these texts, so none of them is markup."""
    page = admin_client.get(reverse("admin:audit_auditreport_change", args=[report.pk]))
    html = page.content.decode()
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td><td>1.0</td>" in html
    assert "<th scope=col>licence</th>" in html
    assert "1 allowed" in html
    assert "/reports/audit-r1.csv" in html


def test_report_list_shows_counts(admin_client: Client, report: AuditReport) -> None:
    """The list tells reports apart without opening them."""
    html = admin_client.get(reverse("admin:audit_auditreport_changelist")).content
    assert b"1 allowed" in html


@pytest.mark.parametrize("name", ["add", "change"])
def test_report_cannot_be_written_by_hand(
    admin_client: Client, report: AuditReport, name: str
) -> None:
    """Only runs write reports, for superusers too."""
    arguments: list[Any] = [report.pk] if name == "change" else []
    address = reverse(f"admin:audit_auditreport_{name}", args=arguments)
    assert admin_client.post(address, {"status": "draft"}).status_code == 403
    report.refresh_from_db()
    assert report.status == "final"


def test_report_page_leads_to_its_run(
    admin_client: Client, report: AuditReport
) -> None:
    """A verdict is explained by the run that found it."""
    page = admin_client.get(reverse("admin:audit_auditreport_change", args=[report.pk]))
    address = reverse("admin:stateknot_run_change", args=["r1"])
    assert f'<a href="{address}">r1</a>' in page.content.decode()
