"""The Django app: says whose graphs these are and imports every app's `graphs.py`."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class StateKnotConfig(AppConfig):
    """Registers checks and graphs once all models are loaded."""

    name = "stateknot"
    verbose_name = "StateKnot"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """See the class."""
        from stateknot import checks, queue_checks  # noqa: F401 - registers them
        from stateknot.conf import get_settings
        from stateknot.kernel.blueprint_definition import Owner
        from stateknot.runtime.identity import set_owner
        from stateknot.runtime.waking import wake_begun
        from stateknot.storage.queueing import run_begun

        settings = get_settings()
        set_owner(Owner(issuer=settings.issuer, subject=settings.subject))
        run_begun.connect(wake_begun, dispatch_uid="stateknot.wake")
        autodiscover_modules("graphs")
