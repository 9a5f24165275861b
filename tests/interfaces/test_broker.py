"""The queue on PostgreSQL: what is taken, in which order, and who is told when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ

from stateknot import broker as broker_module
from stateknot.broker import CHANNEL, NotifyingBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.only_on("postgres"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> NotifyingBroker:
    monkeypatch.setattr(broker_module, "RECONNECT_SECONDS", 0.0)
    monkeypatch.setattr(broker_module, "LONGEST_WAIT_SECONDS", 0.05)
    return NotifyingBroker(list_key="here")


@pytest.fixture
def other() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Return a connection of somebody else."""
    with psycopg.connect(**connection.get_connection_params()) as opened:
        yield opened


def take(broker: NotifyingBroker) -> list[str]:
    """Take what is there; the messages alone."""
    return [message for _, message in broker.dequeue() or []]


def test_project_uses_it() -> None:
    assert isinstance(get_broker(), NotifyingBroker)


def test_messages_are_taken_oldest_first(broker: NotifyingBroker) -> None:
    for message in ("first", "second", "third"):
        broker.enqueue(message)
    assert [take(broker)[0] for _ in range(3)] == ["first", "second", "third"]


def test_message_of_another_queue_is_left(broker: NotifyingBroker) -> None:
    NotifyingBroker(list_key="elsewhere").enqueue("theirs")
    assert take(broker) == []


def test_taken_message_is_not_taken_again_before_retry(broker: NotifyingBroker) -> None:
    """WQ-01: the database's clock decides, and `retry` lies above the job's time."""
    broker.enqueue("once")
    assert take(broker) == ["once"]
    assert take(NotifyingBroker(list_key="here")) == []
    OrmQ.objects.update(lock="2001-01-01T00:00:00Z")
    assert take(NotifyingBroker(list_key="here")) == ["once"]


def test_acknowledged_message_is_gone(broker: NotifyingBroker) -> None:
    number = broker.enqueue("done")
    broker.acknowledge(number)
    assert not OrmQ.objects.exists()


def test_row_that_another_holds_is_passed_over(
    broker: NotifyingBroker, other: psycopg.Connection[tuple[object, ...]]
) -> None:
    """WQ-11: two clusters neither take one message nor wait for each other."""
    held = broker.enqueue("held")
    broker.enqueue("free")
    other.execute("SELECT 1 FROM django_q_ormq WHERE id = %s FOR UPDATE", [held])
    assert take(broker) == ["free"]


def test_wq_12_nobody_is_told_before_the_commit(
    broker: NotifyingBroker, other: psycopg.Connection[tuple[object, ...]]
) -> None:
    """WQ-12: row and notification appear together, with the caller's commit."""
    other.autocommit = True
    other.execute(f"LISTEN {CHANNEL}")
    with transaction.atomic():
        broker.enqueue("message")
        assert not list(other.notifies(timeout=0.05))
    assert [told.channel for told in other.notifies(timeout=5, stop_after=1)]
    assert take(broker) == ["message"]


def test_wq_12_rolled_back_message_never_was(
    broker: NotifyingBroker, other: psycopg.Connection[tuple[object, ...]]
) -> None:
    """WQ-12: neither the row nor the notification survives the rollback."""
    other.autocommit = True
    other.execute(f"LISTEN {CHANNEL}")
    with transaction.atomic():
        broker.enqueue("message")
        transaction.set_rollback(True)
    assert not list(other.notifies(timeout=0.05))
    assert take(broker) == []


def test_wq_13_one_connection_takes_locks_and_listens(broker: NotifyingBroker) -> None:
    """WQ-13: all statements run on the connection of the queue's own alias."""
    broker.enqueue("message")
    with CaptureQueriesContext(connections[Conf.ORM]) as queries:
        take(broker)
    assert [query["sql"].split()[0] for query in queries] == ["LISTEN", "SET", "UPDATE"]


def test_waiting_asks_the_database_nothing(
    broker: NotifyingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle worker asks every `poll` seconds, however often it looks up."""
    monkeypatch.setattr(Conf, "POLL", 3600)
    take(broker)
    with CaptureQueriesContext(connections[Conf.ORM]) as queries:
        for _ in range(5):
            assert take(broker) == []
    assert not queries.captured_queries


def test_waiting_broker_is_woken_by_another_connection(
    broker: NotifyingBroker,
    other: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Conf, "POLL", 3600)
    take(broker)
    monkeypatch.setattr(broker_module, "LONGEST_WAIT_SECONDS", 5.0)
    other.execute(broker_module._PUT, ["here", "message", CHANNEL])
    other.commit()
    assert take(broker) == []
    assert take(broker) == ["message"]


def test_lost_notification_is_made_up_for(
    broker: NotifyingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that came back after `retry` has none; the next question finds it."""
    monkeypatch.setattr(Conf, "POLL", 0)
    assert take(broker) == []
    OrmQ.objects.create(key="here", payload="silent", lock="2001-01-01T00:00:00Z")
    assert take(broker) == ["silent"]


def test_wq_10_killed_connection_is_replaced(
    broker: NotifyingBroker,
    other: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WQ-10: the server closed it while nobody looked; the broker listens anew."""
    monkeypatch.setattr(Conf, "POLL", 3600)
    take(broker)
    (pid,) = connection.cursor().execute("SELECT pg_backend_pid()").fetchone()
    other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert take(broker) == []
    other.execute(broker_module._PUT, ["here", "message", CHANNEL])
    other.commit()
    assert take(broker) == ["message"]
    assert take(broker) == []
    monkeypatch.setattr(broker_module, "LONGEST_WAIT_SECONDS", 5.0)
    other.execute(broker_module._PUT, ["here", "next", CHANNEL])
    other.commit()
    take(broker)
    assert take(broker) == ["next"]


def test_wq_10_aged_connection_listens_again(
    broker: NotifyingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WQ-10: Django closes a connection that is older than CONN_MAX_AGE."""
    monkeypatch.setattr(Conf, "POLL", 0)
    take(broker)
    connection.close()
    assert take(broker) == []
    heard = connection.cursor().execute("SELECT pg_listening_channels()").fetchall()
    assert heard == [(CHANNEL,)]
