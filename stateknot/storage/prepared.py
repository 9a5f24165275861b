"""A statement that PostgreSQL plans once per connection, and its values as libpq takes
them.

Django's cursor puts values into the text on the client, so the server plans each
boundary anew, and psycopg's asks each value for its type. The boundary's values are
columns of our models, whose types are known before: they are written in libpq's own
form, most of them by one method call. Imported only where the database is PostgreSQL.
Read `boundary_sql.py` for the statement.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq

from stateknot.storage.listening import is_heard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field
    from psycopg.pq.abc import PGresult

    Encoder = Callable[[Any], bytes]

_UNKNOWN_STATEMENT = "26000"
_TEXT, _BINARY = 0, 1
_numbers = count()
_prepared: WeakKeyDictionary[psycopg.Connection[Any], set[bytes]] = WeakKeyDictionary()
"""The statements that each connection knows, by name."""


class PreparedStatement:
    """SQL whose `%s` are columns of models; `fields` are those, in order."""

    def __init__(self, text: str, fields: Sequence[Field[Any, Any]]) -> None:
        first, *others = text.split("%s")
        parts = (f"${number}{part}" for number, part in enumerate(others, 1))
        self._text = "".join((first, *parts)).encode()
        self._name = b"stateknot_%d" % next(_numbers)
        forms = [_form(field) for field in fields]
        self._encoders = [encoder for encoder, _ in forms]
        self._formats = [form for _, form in forms]

    def run(self, connection: BaseDatabaseWrapper, values: Sequence[Any]) -> bytes:
        """Execute it; gives the first value of its first row, as text.

        `values` are those of the columns, as a model instance holds them. Raises
        Django's database errors.
        """
        connection.ensure_connection()
        # psycopg's annotation of what it takes forgets that a value may be absent.
        given: Any = [
            None if value is None else encode(value)
            for encode, value in zip(self._encoders, values, strict=True)
        ]
        driver: psycopg.Connection[Any] = connection.connection
        with connection.wrap_database_errors, driver.lock:
            result = self._execute(driver, given)
            if result.status != pq.ExecStatus.TUPLES_OK:
                raise _error_of(result, driver)
            return result.get_value(0, 0) or b""

    def _execute(self, driver: psycopg.Connection[Any], given: Any) -> PGresult:
        known = _prepared.setdefault(driver, set())
        result = self._try(driver, given, known)
        if _state_of(result) != _UNKNOWN_STATEMENT:
            return result
        # Somebody dropped it (DISCARD ALL). Nothing was written, so unless that broke
        # a transaction it is prepared anew.
        known.discard(self._name)
        if driver.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return result
        return self._try(driver, given, known)

    def _try(
        self, driver: psycopg.Connection[Any], given: Any, known: set[bytes]
    ) -> PGresult:
        if self._name not in known:
            result = driver.pgconn.prepare(self._name, self._text)
            if result.status != pq.ExecStatus.COMMAND_OK:
                return result
            known.add(self._name)
        return driver.pgconn.exec_prepared(self._name, given, self._formats)


def can_prepare(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement may go past Django's cursor now.

    Not where somebody listens to what cursors execute; and at the head of a
    transaction it is psycopg's cursor that sends the BEGIN.
    """
    if is_heard(connection):
        return False
    connection.ensure_connection()
    driver: psycopg.Connection[Any] = connection.connection
    begun = driver.pgconn.transaction_status == pq.TransactionStatus.INTRANS
    return driver.autocommit or begun


def _error_of(result: PGresult, driver: psycopg.Connection[Any]) -> psycopg.Error:
    """What went wrong. A lost connection is no fault of the statement: it is retried.

    Its result comes from libpq and has no state from which psycopg could tell.
    """
    if driver.pgconn.status != pq.ConnStatus.OK and not _state_of(result):
        message = result.get_error_message(driver.info.encoding)
        return psycopg.OperationalError(message)
    return psycopg.errors.error_from_result(result, driver.info.encoding)


def _state_of(result: PGresult) -> str:
    if result.status != pq.ExecStatus.FATAL_ERROR:
        return ""
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()


def _form(field: Field[Any, Any]) -> tuple[Encoder, int]:
    """How a column's value is written, and whether that is libpq's binary form.

    Text is sent in the binary form too: in the other a NUL would end it unseen.
    """
    column: Any = field.target_field if field.is_relation else field  # type: ignore[attr-defined]
    kind = column.get_internal_type()
    if kind == "JSONField":
        encoder = column.encoder
        return lambda value: json.dumps(value, cls=encoder).encode(), _TEXT
    return _FORMS[kind]


_FORMS: dict[str, tuple[Encoder, int]] = {
    "UUIDField": (lambda value: value.bytes, _BINARY),
    "BinaryField": (lambda value: value, _BINARY),
    "CharField": (str.encode, _BINARY),
    "BigIntegerField": (lambda value: b"%d" % value, _TEXT),
    "IntegerField": (lambda value: b"%d" % value, _TEXT),
    "FloatField": (lambda value: repr(value).encode(), _TEXT),
    "BooleanField": (lambda value: b"t" if value else b"f", _TEXT),
    "DateTimeField": (lambda value: value.isoformat().encode(), _TEXT),
}
