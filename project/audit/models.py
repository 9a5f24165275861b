"""The audit's one row: a report, found again by its run.

Written by `report.py` only; the admin shows it and changes nothing.
"""

from __future__ import annotations

from django.db import models

from project.audit.review import VERDICTS


class AuditReport(models.Model):
    """Outcome of one audit; a draft until every question has its answer."""

    class Status(models.TextChoices):
        """How far the audit is."""

        DRAFT = "draft", "draft, questions are open"
        FINAL = "final", "final"

    run_id = models.CharField(max_length=64, unique=True)
    thread_id = models.CharField(max_length=200, blank=True, db_index=True)
    status = models.CharField(max_length=8, choices=Status.choices)
    packages = models.PositiveIntegerField()
    open_questions = models.PositiveIntegerField()
    by_verdict = models.JSONField()
    rows = models.JSONField()
    csv_file = models.CharField(max_length=500)
    json_file = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """Newest first; a status outside the list is refused by the database."""

        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(status__in=("draft", "final")),
                name="audit_auditreport_status_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_status_display()}: {self.packages} packages"

    @property
    def verdicts(self) -> str:
        """The counts as one line, always in the same order: jsonb keeps none."""
        counts = ((self.by_verdict.get(verdict), verdict) for verdict in VERDICTS)
        return ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
