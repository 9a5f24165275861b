"""What the executor's tests share: both stores, a clock, a sink.

Every test with a thread asks for `checkpointer` and so runs once over each store.
"""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import MemoryCheckpointer
from stateknot.runtime.events import CollectingSink
from tests.runtime.clock import FakeClock

IN_DATABASE = pytest.param("django", marks=pytest.mark.django_db(transaction=True))


@pytest.fixture(params=["memory", IN_DATABASE])
def checkpointer(request: pytest.FixtureRequest) -> Any:
    """Give an empty store: in this process, or in the database.

    Steps run in threads with connections of their own, so the database is used without
    a surrounding transaction.
    """
    if request.param == "memory":
        return MemoryCheckpointer()
    from stateknot.storage import DjangoCheckpointer

    return DjangoCheckpointer()


@pytest.fixture
def clock() -> FakeClock:
    """Give a clock that only moves when the engine sleeps."""
    return FakeClock()


@pytest.fixture
def sink() -> CollectingSink:
    """Give a sink that keeps every event it is told."""
    return CollectingSink()


@pytest.fixture
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test register graphs that no other test sees."""
    monkeypatch.setattr("stateknot.registry._graphs", {})


@pytest.fixture(params=["memory", IN_DATABASE])
def time(request: pytest.FixtureRequest) -> Any:
    """Give a store whose time a test lets pass, as `time.store`."""
    from tests.runtime.moving_time import DatabaseTime, MemoryTime

    return MemoryTime() if request.param == "memory" else DatabaseTime()
