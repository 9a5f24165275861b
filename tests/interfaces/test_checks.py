"""The system checks name the value and say what to do; each has an id."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from stateknot.conf import get_settings


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
    late = {"ENGINE": "django.db.backends.sqlite3", "NAME": "x", "OPTIONS": options}
    monkeypatch.setitem(settings.DATABASES, "default", late)
    assert ids() == ["stateknot.E003"]


def test_changed_setting_is_read_at_use(settings: Any) -> None:
    settings.STATEKNOT = {"lease_seconds": 12.0}
    assert get_settings().heartbeat_seconds == 4.0
    settings.STATEKNOT = {"lease_seconds": 3.0}
    assert get_settings().heartbeat_seconds == 1.0
