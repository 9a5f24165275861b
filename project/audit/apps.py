"""The Django app of the licence audit; its graph stands in `graphs.py`."""

from __future__ import annotations

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Names the app; StateKnot's autodiscovery imports its graphs."""

    name = "project.audit"
    label = "audit"
    verbose_name = "Licence audit"
    default_auto_field = "django.db.models.BigAutoField"
