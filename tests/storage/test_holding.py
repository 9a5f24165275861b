"""A process stopped in the middle of a transaction does not keep a run from others."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from stateknot.models import Run
from stateknot.storage import DjangoCheckpointer
from tests.storage.hand_driver import HandDriver, attempt

pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.django_db(transaction=True)]


def write_and_stop(driver: HandDriver, until: Thread) -> None:
    """Write an attempt, and commit it only when the other thread is through."""
    with driver.store.atomic():
        driver.store.record_attempts(driver.fence, [attempt("1:0:a", 2)], [])
        until.start()
        until.join()


def test_lock_of_a_stopped_driver_ends_with_its_lease(settings: Any) -> None:
    """It is stopped behind its write and in front of the commit, and wakes up late."""
    settings.STATEKNOT = {"lease_seconds": 1.0}
    driver = HandDriver(DjangoCheckpointer())
    driver.commit()
    taken: list[bool] = []

    def take_over() -> None:
        """Waits for the lock for as long as the other holds it."""
        try:
            with DjangoCheckpointer().atomic():
                held = Run.objects.select_for_update().filter(id=driver.run.id)
                taken.append(held.exists() and bool(held.get()))
        finally:
            connections.close_all()

    other = Thread(target=take_over)
    with pytest.raises(OperationalError, match="idle-in-transaction"):
        write_and_stop(driver, other)
    connection.close_if_unusable_or_obsolete()
    assert taken == [True]
    assert driver.store.list_attempts(str(driver.run.id)) == []


def test_transaction_of_a_caller_is_not_bounded() -> None:
    """What the caller does around the engine's write may take its time."""
    driver = HandDriver(DjangoCheckpointer())
    driver.commit()
    with driver.store.atomic(), driver.store.atomic():
        driver.store.renew(driver.fence)
        with connection.cursor() as cursor:
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("0",)
