"""Rows whose columns are mostly bytes, without their way through text.

PostgreSQL sends bytes as hexadecimal text unless it is asked for the binary form, which
Django's cursor does not do: a state of a megabyte is then two on the wire, and is
written and parsed digit by digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connections

from stateknot.storage.listening import is_heard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet


def fetch_bytes(rows: QuerySet[Any, Any]) -> Iterable[tuple[Any, ...]]:
    """The rows of a `values_list` of integers and bytes, in no order of their own.

    Where somebody listens to what cursors execute, it is Django's that asks.
    """
    connection = connections[rows.db]
    is_past = connection.vendor == "postgresql" and not is_heard(connection)
    if not is_past or connection.needs_rollback:
        return rows
    import psycopg

    text, values = rows.query.sql_with_params()
    connection.ensure_connection()
    with (
        connection.wrap_database_errors,
        psycopg.Cursor(connection.connection) as cursor,
    ):
        return cursor.execute(text, values, binary=True).fetchall()
