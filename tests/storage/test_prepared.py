"""The boundary's statement is planned once per connection, on PostgreSQL."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from django.db import OperationalError, connection

from stateknot.kernel.retry import is_retryable
from stateknot.storage import DjangoCheckpointer
from tests.storage.test_boundary_paths import Alone

pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.django_db(transaction=True)]
PREPARED = (
    "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'WITH held%'"
)


def count_prepared(supersteps: int) -> int:
    """Commit boundaries on a new connection; gives how many statements it prepared."""
    connection.close()
    driver = Alone(DjangoCheckpointer())
    for number in range(supersteps):
        driver.commit(changes={"n": number})
    with connection.cursor() as cursor:
        cursor.execute(PREPARED)
        (count,) = cursor.fetchone()
    return int(count)


def test_boundary_statement_is_prepared_once() -> None:
    """Django forbids it on its connections, so asking psycopg for it is not enough."""
    assert count_prepared(5) == 1


def test_boundary_statement_that_was_dropped_is_prepared_again() -> None:
    """A pool may reset the connection that it lends."""
    driver = Alone(DjangoCheckpointer())
    driver.commit(changes={"n": 1})
    driver.commit(changes={"n": 2})
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")
    driver.commit(changes={"n": 3})
    found = driver.store.find_checkpoint("t")
    assert found is not None
    assert found.values["n"] == 3


def test_boundary_on_a_connection_that_died_is_an_error_of_django() -> None:
    """So Django knows to close it, and the next boundary opens another."""
    driver = Alone(DjangoCheckpointer())
    driver.commit(changes={"n": 1})
    pid = connection.connection.info.backend_pid
    connection.connection.pgconn.finish()
    with pytest.raises(OperationalError):
        driver.commit(changes={"n": 2})
    connection.close_if_unusable_or_obsolete()
    driver.commit(changes={"n": 3})
    assert connection.connection.info.backend_pid != pid
    found = driver.store.find_checkpoint("t")
    assert found is not None
    assert found.values["n"] == 3


def test_boundary_whose_answer_never_comes_is_an_error_of_the_world() -> None:
    """The server may or may not have it, and another drive goes on."""
    driver = Alone(DjangoCheckpointer())
    driver.commit(changes={"n": 1})
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    with pytest.raises(OperationalError, match="closed the connection") as caught:
        driver.commit(changes={"n": 2})
    connection.close()
    assert is_retryable(caught.value)


def test_boundary_statement_behind_a_pooler_is_not_prepared(
    settings: Any,
) -> None:
    settings.STATEKNOT = {"prepared_statements": False}
    assert count_prepared(5) == 0
    assert connection.connection.prepare_threshold is None
