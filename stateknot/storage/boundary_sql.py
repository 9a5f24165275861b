"""The SQL of a boundary's commit: the one place that goes past the ORM.

A superstep is one write, and the ORM's share of it is larger than the database's. On
PostgreSQL it is one prepared statement with the fence in it, which needs no BEGIN and
no COMMIT of its own; elsewhere it is one statement a table. Columns and their types
come from the models, so there is no second truth about them, and every value is a
parameter. `boundary.py` builds the rows.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from django.db import connections

from stateknot.conf import get_settings
from stateknot.models import Checkpoint, JournalEvent, NodeAttempt, Run
from stateknot.storage.adapting import adapt
from stateknot.storage.listening import is_heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, Model

    from stateknot.storage.prepared import PreparedStatement

_BY_DATABASE = frozenset({"created_at", "recorded_at"})
_MOST_ATTEMPTS = 64
_MOST_ROWS = 1_000
"""Rows of one INSERT: SQLite admits 32,766 values of a statement, unless it was built
for more, and a superstep may end ten thousand attempts."""
MOVED = ("head_id", "sequence", "lineage", "steps", "next_journal", "event_count")
HELD = ("id", "epoch", "holder", "next_journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRows:
    """What a hot boundary writes: the run's move under its fence, and the new rows.

    `moved` has the columns in `MOVED`, `held` those in `HELD`; the others are columns
    by attribute name.
    """

    moved: Mapping[str, Any]
    active_seconds: float
    held: Mapping[str, Any]
    checkpoint: Mapping[str, Any]
    attempts: Sequence[Mapping[str, Any]]
    entry: Mapping[str, Any] | None


def is_one_statement(using: str) -> bool:
    """Whether a boundary on this database is one statement, and so its own transaction.

    Inside a transaction it is written like the rest of it.
    """
    connection = connections[using]
    return connection.vendor == "postgresql" and not connection.in_atomic_block


def write_rows(rows: BoundaryRows, using: str) -> bool:
    """Write a hot boundary; False when the fence or the journal number met no run."""
    connection = connections[using]
    if connection.vendor == "postgresql" and len(rows.attempts) <= _MOST_ATTEMPTS:
        return _write_at_once(rows, connection)
    return _write_each(rows, connection)


def _write_at_once(rows: BoundaryRows, connection: BaseDatabaseWrapper) -> bool:
    from stateknot.storage.prepared import can_prepare

    count, has_entry = len(rows.attempts), rows.entry is not None
    if get_settings().prepared_statements and can_prepare(connection):
        statement = _prepared_statement(connection.alias, count, has_entry)
        return statement.run(connection, _given(rows)) != b"0"
    with connection.cursor() as cursor:
        text = _one_statement(connection.alias, count, has_entry)
        cursor.execute(text, _adapted(rows, connection))
        (held,) = cursor.fetchone()
    return bool(held)


def _given(rows: BoundaryRows) -> list[Any]:
    """The values of the one statement, column by column."""
    values = [rows.moved[name] for name in MOVED]
    values.append(rows.active_seconds)
    values += [rows.held[name] for name in HELD]
    values += [rows.checkpoint[name] for name in _names(Checkpoint)]
    names = _names(NodeAttempt)
    for attempt in rows.attempts:
        values += [attempt[name] for name in names]
    if rows.entry is not None:
        values += [rows.entry[name] for name in _names(JournalEvent)]
    return values


def _adapted(rows: BoundaryRows, connection: BaseDatabaseWrapper) -> list[Any]:
    """The same values as a cursor takes them."""
    values = _run_values(rows, connection)
    values += _values(Checkpoint, rows.checkpoint, connection)
    for attempt in rows.attempts:
        values += _values(NodeAttempt, attempt, connection)
    if rows.entry is not None:
        values += _values(JournalEvent, rows.entry, connection)
    return values


def _write_each(rows: BoundaryRows, connection: BaseDatabaseWrapper) -> bool:
    with _cursor(connection) as cursor:
        cursor.execute(_update(connection.alias), _run_values(rows, connection))
        if not cursor.rowcount:
            return False
    insert_rows(rows, connection.alias)
    return True


def insert_rows(rows: BoundaryRows, using: str) -> None:
    """Write the new rows of a boundary whose run was moved already."""
    connection = connections[using]
    with _cursor(connection) as cursor:
        _insert(cursor, Checkpoint, [rows.checkpoint], connection)
        if rows.attempts:
            _insert(cursor, NodeAttempt, rows.attempts, connection)
        if rows.entry is not None:
            _insert(cursor, JournalEvent, [rows.entry], connection)


@contextmanager
def _cursor(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """Django's cursor, or on SQLite the driver's own where nobody listens to it.

    Django's costs as much there as what it executes. Call it inside a transaction.
    """
    is_past = connection.vendor == "sqlite" and not is_heard(connection)
    if not is_past or connection.needs_rollback:
        with connection.cursor() as cursor:
            yield cursor
        return
    with connection.wrap_database_errors:
        yield _SqliteCursor(connection.connection)


class _SqliteCursor(sqlite3.Cursor):
    """Takes `%s` for a value, as Django's does."""

    def execute(self, text: str, values: Any = (), /) -> Self:
        """See sqlite3."""
        super().execute(text.replace("%s", "?"), values)
        return self


def _insert(
    cursor: Any,
    model: type[Model],
    rows: Sequence[Mapping[str, Any]],
    connection: BaseDatabaseWrapper,
) -> None:
    row = f"({', '.join(['%s'] * len(_fields(model)))})"
    for start in range(0, len(rows), _MOST_ROWS):
        part = rows[start : start + _MOST_ROWS]
        text = f"{_into(model)} VALUES {', '.join([row] * len(part))}"
        values = [v for item in part for v in _values(model, item, connection)]
        cursor.execute(text, values)


@lru_cache
def _fields(model: type[Model]) -> tuple[Field[Any, Any], ...]:
    """The columns that a row is written with; the database fills in the others."""
    return tuple(
        field for field in model._meta.concrete_fields if field.name not in _BY_DATABASE
    )


@lru_cache
def _names(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in _fields(model))


def _values(
    model: type[Model], row: Mapping[str, Any], connection: BaseDatabaseWrapper
) -> list[Any]:
    return adapt(model, _names(model), row, connection)


def _run_values(rows: BoundaryRows, connection: BaseDatabaseWrapper) -> list[Any]:
    return [
        *adapt(Run, MOVED, rows.moved, connection),
        rows.active_seconds,
        *adapt(Run, HELD, rows.held, connection),
    ]


@lru_cache
def _into(model: type[Model]) -> str:
    columns = ", ".join(f'"{field.column}"' for field in _fields(model))
    return f'INSERT INTO "{model._meta.db_table}" ({columns})'


@lru_cache
def _update(alias: str) -> str:
    """The run's move. On PostgreSQL each value says its type, as `_typed` does."""
    fields = {field.attname: field for field in Run._meta.concrete_fields}
    sets = ", ".join(f'"{name}" = {_typed(fields[name], alias)}' for name in MOVED)
    active = _typed(fields["active_seconds"], alias)
    held = " AND ".join(f'"{name}" = {_typed(fields[name], alias)}' for name in HELD)
    return (
        f'UPDATE "{Run._meta.db_table}" SET {sets}, '  # noqa: S608 - names of columns
        f'"active_seconds" = "active_seconds" + {active} WHERE {held}'
    )


def _typed(field: Field[Any, Any], alias: str) -> str:
    """A placeholder; a prepared statement must be told the type of each value."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return "%s"
    # Without the length: a cast to one would cut a value that is too long for it.
    return f"%s::{str(field.db_type(connection)).partition('(')[0]}"


@lru_cache(maxsize=256)
def _one_statement(alias: str, attempts: int, has_entry: bool) -> str:
    """The whole boundary: nothing is inserted unless the run's move met its row."""
    parts = [
        f"WITH held AS ({_update(alias)} RETURNING 1)",
        f"written AS ({_from_held(Checkpoint, alias, 1)})",
    ]
    if attempts:
        parts.append(f"tried AS ({_from_held(NodeAttempt, alias, attempts)})")
    if has_entry:
        parts.append(f"told AS ({_from_held(JournalEvent, alias, 1)})")
    return f"{', '.join(parts)} SELECT count(*) FROM held"  # noqa: S608 - as above


@lru_cache(maxsize=256)
def _prepared_statement(
    alias: str, attempts: int, has_entry: bool
) -> PreparedStatement:
    """The same for a connection that prepares it.

    Behind a pooler that shares connections between transactions, prepared statements
    are lost: `prepared_statements` turns them off.
    """
    from stateknot.storage.prepared import PreparedStatement

    of_run = {field.attname: field for field in Run._meta.concrete_fields}
    fields = [of_run[name] for name in (*MOVED, "active_seconds", *HELD)]
    fields += _fields(Checkpoint)
    fields += _fields(NodeAttempt) * attempts
    fields += _fields(JournalEvent) if has_entry else ()
    return PreparedStatement(_one_statement(alias, attempts, has_entry), fields)


def _from_held(model: type[Model], alias: str, count: int) -> str:
    row = f"({', '.join(_typed(field, alias) for field in _fields(model))})"
    rows = ", ".join([row] * count)
    given = f"SELECT given.* FROM held, (VALUES {rows}) AS given"  # noqa: S608
    return f"{_into(model)} {given}"
