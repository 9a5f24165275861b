"""The system checks name the value and say what to do; each has an id."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from pydantic import BaseModel

from stateknot import START, GraphBuilder, registry
from stateknot.conf import get_settings

POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}
LITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": "x",
    "OPTIONS": {"transaction_mode": "IMMEDIATE"},
}


class Empty(BaseModel):
    pass


def ids() -> list[str]:
    return [str(message.id) for message in run_checks(tags=["stateknot"])]


def test_project_passes_its_checks() -> None:
    assert ids() == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"lease_second": 30.0}, "lease_second"),
        ({"lease_seconds": 0.0}, "lease_seconds"),
        ({"quantum_supersteps": "many"}, "quantum_supersteps"),
        ({"database": 1}, "database"),
    ],
)
def test_wrong_setting_is_named(settings: Any, given: Any, named: str) -> None:
    settings.STATEKNOT = given
    (message,) = run_checks(tags=["stateknot"])
    assert message.id == "stateknot.E001"
    assert named in message.msg
    assert message.hint


def test_wrong_setting_is_not_used(settings: Any) -> None:
    settings.STATEKNOT = {"lease_seconds": -1.0}
    with pytest.raises(ImproperlyConfigured, match="lease_seconds"):
        get_settings()


def test_unknown_database_is_named(settings: Any) -> None:
    settings.STATEKNOT = {"database": "elsewhere"}
    assert ids() == ["stateknot.E002"]


@pytest.mark.parametrize("options", [{}, {"transaction_mode": "DEFERRED"}])
def test_sqlite_that_begins_late_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """Two workers could read the same row before either writes."""
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "broker_class": None}
    late = {"ENGINE": "django.db.backends.sqlite3", "NAME": "x", "OPTIONS": options}
    monkeypatch.setitem(settings.DATABASES, "default", late)
    assert ids() == ["stateknot.E003"]


def test_changed_setting_is_read_at_use(settings: Any) -> None:
    settings.STATEKNOT = {"lease_seconds": 12.0}
    assert get_settings().heartbeat_seconds == 4.0
    settings.STATEKNOT = {"lease_seconds": 3.0}
    assert get_settings().heartbeat_seconds == 1.0


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"timeout": None}, "stateknot.E010"),
        ({"timeout": 0}, "stateknot.E010"),
        ({"timeout": 299.5}, "stateknot.E010"),
        ({"retry": 300}, "stateknot.E011"),
        ({"retry": 10}, "stateknot.E011"),
        ({"timeout": 60}, "stateknot.E012"),
    ],
)
def test_wq_01_queue_times_out_of_order_are_refused(
    settings: Any, given: dict[str, Any], refused: str
) -> None:
    """WQ-01: redelivery while running; the message shows all three values."""
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **given}
    (message,) = run_checks(tags=["stateknot"])
    assert message.id == refused
    assert message.is_serious()
    for name in ("timeout", "retry"):
        assert f"{name} {settings.Q_CLUSTER[name]!r}" in message.msg
    assert "60 s (STATEKNOT['quantum_seconds'])" in message.msg
    assert "Q_CLUSTER[" in str(message.hint)


def test_wq_01_retry_of_the_queue_itself_is_too_short(settings: Any) -> None:
    """WQ-01: django-q2 takes 60 seconds where nothing is set."""
    given = dict(settings.Q_CLUSTER)
    del given["retry"]
    settings.Q_CLUSTER = given
    assert ids() == ["stateknot.E011"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"guard_cycle": 0.2}, "stateknot.E013"),
        ({"guard_cycle": 2}, "stateknot.E013"),
        ({"sync": True}, "stateknot.E014"),
        ({"orm": "elsewhere", "broker_class": None}, "stateknot.E015"),
        ({"workers": 0}, "stateknot.E017"),
        ({"workers": "many"}, "stateknot.E017"),
        ({"queue_limit": 0}, "stateknot.W001"),
        ({"workers": 2, "queue_limit": 50}, "stateknot.W001"),
        ({"ack_failures": False, "max_attempts": 0}, "stateknot.W002"),
        ({"save_limit": 250}, "stateknot.W003"),
    ],
)
def test_queue_that_cannot_work_is_named(
    settings: Any, given: dict[str, Any], told: str
) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **given}
    (message,) = run_checks(tags=["stateknot"])
    assert message.id == told
    assert message.hint


@pytest.mark.parametrize("cycle", [1, 0.5, 0.25])
def test_guard_that_counts_down_to_zero_passes(settings: Any, cycle: float) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "guard_cycle": cycle}
    assert ids() == []


def test_broker_that_listens_is_refused_on_sqlite(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES, "default", LITE)
    broker = "stateknot.broker.NotifyingBroker"
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "broker_class": broker}
    assert ids() == ["stateknot.E016"]


def test_queue_of_redis_needs_no_alias(settings: Any) -> None:
    given = {k: v for k, v in settings.Q_CLUSTER.items() if k != "orm"}
    settings.Q_CLUSTER = {**given, "broker_class": None, "redis": {"port": 6379}}
    assert ids() == []


def test_wq_11_sqlite_with_atomic_requests_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WQ-11: one transaction around a request would hold the only write lock."""
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "broker_class": None}
    monkeypatch.setitem(
        settings.DATABASES, "default", {**LITE, "ATOMIC_REQUESTS": True}
    )
    assert ids() == ["stateknot.E018"]


def test_wq_10_kept_connection_without_a_test_is_named(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WQ-10: after a restart of the server the next piece of work would fail too."""
    kept = {**POSTGRES, "CONN_MAX_AGE": 60}
    monkeypatch.setitem(settings.DATABASES, "default", kept)
    assert ids() == ["stateknot.W004"]
    tested = {**kept, "CONN_HEALTH_CHECKS": True}
    monkeypatch.setitem(settings.DATABASES, "default", tested)
    assert ids() == []


def test_wq_10_worker_refuses_a_pool(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WQ-10: a pool does not survive the forks of a cluster; a web process may."""
    pooled = {**POSTGRES, "OPTIONS": {"pool": True}}
    monkeypatch.setitem(settings.DATABASES, "default", pooled)
    assert ids() == []
    with pytest.raises(CommandError, match="pool"):
        call_command("stateknot_worker")


@pytest.mark.parametrize("lease", [1.0, 30.0, 7.5])
def test_lease_is_never_shorter_than_three_heartbeats(
    settings: Any, lease: float
) -> None:
    """The heartbeat follows the lease; there is no setting that could undercut it."""
    settings.STATEKNOT = {"lease_seconds": lease}
    assert get_settings().heartbeat_seconds * 3 <= lease


def test_graph_that_cannot_spread_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On SQLite its steps run in one process; on PostgreSQL there is nothing to say."""
    monkeypatch.setattr(registry, "_graphs", {})
    builder = GraphBuilder("checks.spread", state=Empty)
    builder.add_node("only", lambda _state: None).add_edge(START, "only")
    registry.register(builder.compile().with_parallel(spread=True))
    expected = [] if connection.vendor == "postgresql" else ["stateknot.W005"]
    assert ids() == expected
