"""Work and its record in one transaction, and attempts that begin, on both stores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group

from stateknot.errors import LeaseError
from stateknot.kernel.once import BEGUN, DONE, marked
from stateknot.kernel.records import Event, Recorded
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.kernel.writes import Reopening
from tests.storage.hand_driver import NOON, HandDriver, attempt, everything

if TYPE_CHECKING:
    from stateknot.kernel.records import AttemptRecord
    from stateknot.kernel.store import Store

pytestmark = pytest.mark.django_db
DONE_NOW = Event(kind="node.completed")


def work(given: Recorded | None, error: Exception | None = None) -> Any:
    """What a node does: a row of the project's, then `given` or `error`."""

    def act() -> Recorded | None:
        Group.objects.create(name="paid")
        if error is not None:
            raise error
        return given

    return act


def recorded(**changes: Any) -> Recorded:
    one = attempt("1:0:a", 1, result=marked(DONE, {"update": {}}), **changes)
    return Recorded(attempts=(one,), events=(DONE_NOW,))


def begun() -> AttemptRecord:
    """The start of an attempt."""
    result, status = marked(BEGUN), AttemptStatus.RUNNING
    return attempt("1:0:a", 1, status=status, ended_at=None, result=result)


def record(driver: HandDriver, *attempts: AttemptRecord) -> None:
    with driver.store.atomic():
        driver.store.record_attempts(driver.fence, attempts, ())


def attempts_of(driver: HandDriver) -> list[AttemptRecord]:
    found: list[AttemptRecord] = driver.store.list_attempts(  # type: ignore[attr-defined]
        driver.run.id
    )
    return found


def test_work_is_stored_with_its_record(store: Store) -> None:
    driver, given = HandDriver(store), recorded()
    store.record_with(driver.fence, work(given))
    assert Group.objects.count() == 1
    assert store.list_results(driver.record()) == list(given.attempts)
    assert store.list_journal(driver.run.id)[-1].events == (DONE_NOW,)


def test_work_that_gives_nothing_is_undone(store: Store) -> None:
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    store.record_with(driver.fence, work(None))
    assert Group.objects.count() == 0
    assert everything(store, driver.run.id) == before


def test_work_that_raises_is_undone(store: Store) -> None:
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    with pytest.raises(ValueError, match="no"):
        store.record_with(driver.fence, work(None, ValueError("no")))
    assert Group.objects.count() == 0
    assert everything(store, driver.run.id) == before


def test_work_of_a_stale_holder_is_undone(store: Store) -> None:
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    stale = replace(driver.fence, epoch=driver.fence.epoch + 1)
    with pytest.raises(LeaseError):
        store.record_with(stale, work(recorded()))
    assert Group.objects.count() == 0
    assert everything(store, driver.run.id) == before


def test_attempt_that_begins_is_ended_once(store: Store) -> None:
    driver, start = HandDriver(store), begun()
    record(driver, start)
    assert attempts_of(driver) == [start]
    ended = replace(
        start,
        status=AttemptStatus.SUCCEEDED,
        ended_at=NOON,
        result=marked(DONE),
        usage={"calls": 1},
        closes=True,
    )
    record(driver, ended)
    record(driver, replace(ended, status=AttemptStatus.FAILED, result=None))
    assert attempts_of(driver) == [replace(ended, closes=False)]
    assert store.list_results(driver.record()) == attempts_of(driver)


def test_start_that_is_dropped_is_lost(store: Store) -> None:
    """Nothing stays running that nobody drives."""
    driver, start = HandDriver(store), begun()
    record(driver, start)
    with store.atomic():
        store.release(driver.fence)
        store.reopen(Reopening(run_id=driver.run.id, dropped_attempts=(start.id,)))
    (lost,) = attempts_of(driver)
    assert (lost.status, lost.folded) == ("lost", True)
    assert lost.ended_at is not None
    assert store.list_results(driver.record()) == []
