"""What a driver is given for a column is what Django's field would give it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.db import connection

from stateknot.models import Checkpoint, JournalEvent, NodeAttempt, Run
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.adapting import adapt
from tests.storage.hand_driver import HandDriver, attempt

if TYPE_CHECKING:
    from django.db.models import Field, Model

SAMPLES: dict[str, Any] = {
    "UUIDField": UUID("019a7f6e-3c55-7d21-a2b8-6f7a12345678"),
    "CharField": "é",
    "BinaryField": b'{"a": "\xc3\xa9"}',
    "BooleanField": True,
    "FloatField": 0.25,
    "BigIntegerField": 2**40,
    "IntegerField": 7,
    "DateTimeField": datetime(2026, 11, 30, 23, 59, 1, 5, tzinfo=UTC),
    "JSONField": {"é": [1, None]},
}


def comparable(value: Any) -> Any:
    """Wrappers of drivers compare by identity, their content does not."""
    value = getattr(value, "obj", value)
    return bytes(value) if isinstance(value, memoryview) else value


def sample(field: Field[Any, Any]) -> Any:
    kind = field.target_field if field.is_relation else field  # type: ignore[attr-defined]
    return SAMPLES[kind.get_internal_type()]


@pytest.mark.parametrize("model", [Run, Checkpoint, NodeAttempt, JournalEvent])
def test_adapted_column_is_what_its_field_gives(model: type[Model]) -> None:
    fields = model._meta.concrete_fields
    row = {field.attname: sample(field) for field in fields}
    given = adapt(model, list(row), row, connection)
    expected = [
        field.get_db_prep_save(row[field.attname], connection) for field in fields
    ]
    assert [*map(comparable, given)] == [*map(comparable, expected)]


def test_absent_value_stays_absent() -> None:
    columns = ["error", "result", "ended_at"]
    assert adapt(NodeAttempt, columns, dict.fromkeys(columns), connection) == [None] * 3


@pytest.mark.django_db
def test_boundary_of_more_rows_than_a_statement_takes_is_stored_whole() -> None:
    """SQLite as most systems build it admits 32,766 values of a statement."""
    driver = HandDriver(DjangoCheckpointer())
    if connection.vendor == "sqlite":
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
    driver.commit(attempts=tuple(attempt(f"1:{i}:a", 1) for i in range(2_500)))
    assert NodeAttempt.objects.filter(run_id=driver.run.id).count() == 2_500
