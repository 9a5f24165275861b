"""A column of moments: aware times of UTC in Python, whatever the project's zone.

Leases, timers and ticks are compared and subtracted; a project with USE_TZ off would
hand naive local times to all of them, and SQLite refuses aware ones. Knows no rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper

    DateTimeField = models.DateTimeField[Any, Any]
else:
    DateTimeField = models.DateTimeField


class MomentField(DateTimeField):
    """A DateTimeField whose values are aware with USE_TZ on and off.

    A naive value is one of the project's TIME_ZONE. PostgreSQL keeps moments; elsewhere
    the stored text is UTC, as the database's own clock writes it.
    """

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """See Field: to a migration it is the plain column that it makes."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs

    def from_db_value(
        self, value: datetime | None, _expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        """What was read, aware."""
        if value is None or value.tzinfo is not None:
            return value
        if connection.vendor == "postgresql":
            return timezone.make_aware(value).astimezone(UTC)
        return value.replace(tzinfo=UTC)

    def get_prep_value(self, value: Any) -> Any:
        """What is written or compared with, aware."""
        moment = self.to_python(value)
        if isinstance(moment, datetime) and moment.tzinfo is None:
            return timezone.make_aware(moment)
        return moment if isinstance(moment, datetime) else super().get_prep_value(value)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        """See Field; the driver of SQLite takes no aware value with USE_TZ off."""
        moment = value if prepared else self.get_prep_value(value)
        is_kept_aware = connection.vendor == "postgresql" or connection.timezone
        if isinstance(moment, datetime) and moment.tzinfo and not is_kept_aware:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return connection.ops.adapt_datetimefield_value(moment)
