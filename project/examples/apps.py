"""The Django app of the examples; its graph stands in `graphs.py`."""

from __future__ import annotations

from django.apps import AppConfig


class ExamplesConfig(AppConfig):
    """Names the app; StateKnot's autodiscovery imports its graphs."""

    name = "project.examples"
    label = "examples"
    verbose_name = "Examples"
    default_auto_field = "django.db.models.BigAutoField"
