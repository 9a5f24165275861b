"""`manage.py migrate`: Django's own, of which one runs at a time per database.

See Note [One migrate at a time] in `stateknot/management/migrating.py`. Where another
app has a `migrate` of its own, it is that one which is run under the lock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import find_commands, load_command_class
from django.core.management.base import BaseCommand
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import connections

from stateknot.management.migrating import one_at_a_time


def _wrapped() -> type[BaseCommand]:
    """The command that there would be without this one."""
    for app in apps.get_app_configs():
        folder = Path(app.path) / "management"
        if app.name != "stateknot" and "migrate" in find_commands(str(folder)):
            return type(load_command_class(app.name, "migrate"))
    return DjangoMigrate


class Command(_wrapped()):  # type: ignore[misc]  # which one is known once apps are
    """Waits for its turn."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. What only looks does not wait."""
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        with one_at_a_time(connections[options["database"]]):
            super().handle(*args, **options)
