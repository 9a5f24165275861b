"""Supersteps that are put off, timers and what a run has tried, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import LeaseError, StaleCheckpointError
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import AttemptStatus, RunStatus, WaitKind
from stateknot.kernel.writes import Deferral, Reopening
from tests.storage.hand_driver import HandDriver, attempt, everything, new_id, question

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

HOUR = 3600.0


def put_off(driver: HandDriver, seconds: float, **fields: Any) -> None:
    events = (Event(kind="run.deferred"),)
    with driver.store.atomic():
        driver.store.defer(
            driver.fence, Deferral(delay_seconds=seconds, events=events, **fields)
        )


def test_deferred_run_waits_without_a_holder(store: Store) -> None:
    driver = HandDriver(store)
    head = driver.commit()
    put_off(driver, HOUR, active_seconds=2.5)
    run = driver.record()
    assert (run.status, run.head_id, run.active_seconds) == ("waiting", head.id, 2.5)
    assert run.wake_at is not None
    left = (run.wake_at - store.now()).total_seconds()
    assert HOUR - 60 < left <= HOUR
    with pytest.raises(LeaseError), store.atomic():
        store.renew(driver.fence)


def test_deferred_run_is_not_claimed_before_its_time(store: Store) -> None:
    driver = HandDriver(store)
    put_off(driver, HOUR)
    assert driver.claim() is None
    assert driver.record().status is RunStatus.WAITING


def test_deferred_run_is_claimed_when_it_is_due(store: Store) -> None:
    driver = HandDriver(store)
    put_off(driver, -1.0)
    assert driver.claim() is not None
    run = driver.record()
    assert (run.status, run.wake_at) == (RunStatus.RUNNING, None)


def test_deferral_keeps_what_was_tried(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit()
    failed = attempt("1:0:a", 2, status=AttemptStatus.FAILED, error={"code": "x"})
    put_off(driver, HOUR, attempts=(failed, attempt("1:1:b", 2, result={})))
    run = driver.record()
    assert store.count_tries(run, 2) == {"1:0:a": 1}
    assert store.count_tries(run, 1) == {}
    assert [item.activation_id for item in store.list_results(run)] == ["1:1:b"]
    assert store.list_visits(run.id) == {(0, "1:0:a"): "a", (0, "1:1:b"): "b"}
    assert store.list_journal(run.id)[-1].events[0].kind == "run.deferred"


def test_run_behind_a_timer_is_due_with_the_last_of_them(store: Store) -> None:
    driver = HandDriver(store)
    timers = [
        question("1:0:a", 1, kind=WaitKind.TIMER, due_in_seconds=seconds)
        for seconds in (HOUR, 10.0)
    ]
    driver.commit(status=RunStatus.WAITING, waits=tuple(timers))
    run = driver.record()
    assert run.wake_at is not None
    assert (run.wake_at - store.now()).total_seconds() > HOUR - 60
    assert driver.claim() is None


def test_reopening_that_fires_timers_waits_no_more(store: Store) -> None:
    driver = HandDriver(store)
    timer = question("1:0:a", 1, kind=WaitKind.TIMER, due_in_seconds=HOUR)
    driver.commit(status=RunStatus.WAITING, waits=(timer,))
    with store.atomic():
        run = store.reopen(Reopening(run_id=driver.run.id, fires_timers=True))
    assert (run.status, run.wake_at) == (RunStatus.PENDING, None)
    assert store.list_waits("t") == []
    assert driver.claim() is not None


def test_reopening_drops_results_that_it_names(store: Store) -> None:
    driver = HandDriver(store)
    kept, dropped = attempt("1:0:a", 1, result={}), attempt("1:1:b", 1, result={})
    driver.commit(status=RunStatus.FAILED, attempts=(kept, dropped))
    reopening = Reopening(run_id=driver.run.id, dropped_attempts=(dropped.id,))
    with store.atomic():
        run = store.reopen(reopening)
    assert [item.id for item in store.list_results(run)] == [kept.id]


def test_reopening_of_a_head_that_moved_is_refused(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(status=RunStatus.FAILED)
    before = everything(store, driver.run.id)
    stale = Reopening(run_id=driver.run.id, expected_head=new_id())
    with pytest.raises(StaleCheckpointError), store.atomic():
        store.reopen(stale)
    assert everything(store, driver.run.id) == before


def test_question_is_found_by_the_id_that_its_author_gave(store: Store) -> None:
    driver = HandDriver(store)
    asked = question("1:0:a", 1, question_id="approval")
    driver.commit(status=RunStatus.INTERRUPTED, waits=(asked,))
    found = store.find_question("t", "approval")
    assert found is not None
    assert (found.id, found.public_id) == (asked.id, "approval")
    assert store.find_question("t", "nothing") is None
    assert store.find_question("other", "approval") is None


def test_children_of_a_run_are_listed_in_order(store: Store) -> None:
    root = HandDriver(store)
    children = [
        HandDriver(store, namespace=("call", str(n)), parent_run_id=root.run.id)
        for n in range(3)
    ]
    found = store.list_children(root.run.id)
    assert [run.id for run in found] == [child.run.id for child in children]
    assert store.list_children(children[0].run.id) == []
