"""Runs that wait for their thread, on both stores. See Note [The next run]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import ThreadBusyError
from stateknot.kernel.records import Event
from stateknot.kernel.usage import CLOSING
from stateknot.kernel.vocabulary import RunStatus
from stateknot.kernel.writes import Cancellation
from tests.storage.hand_driver import HandDriver, admission

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store


FAILURE = {"node": "a", "code": "limit", "message": "no"}
CLOSING_EVENT = Event(kind=CLOSING, data={"failure": FAILURE})


def enqueue(store: Store, thread_id: str = "t", **changes: Any) -> RunRecord:
    with store.atomic():
        return store.enqueue(admission(thread_id, **changes))


def again(store: Store, run: RunRecord) -> RunRecord:
    found = store.find_run(run.id)
    assert found is not None
    return found


def cancel(store: Store, run_id: str) -> None:
    with store.atomic():
        store.cancel(Cancellation(run_id=run_id, reason="enough"))


def test_run_on_a_free_thread_begins_at_once(store: Store) -> None:
    run = enqueue(store)
    assert (run.status, run.is_queued) == (RunStatus.PENDING, False)
    assert store.find_thread_run("t") == run
    with store.atomic():
        assert store.claim(run.id, "worker") is not None


def test_queued_run_waits_without_a_checkpoint(store: Store) -> None:
    driver = HandDriver(store)
    run = enqueue(store, values={"mark": "second"}, actor="ada")
    assert (run.status, run.is_queued) == (RunStatus.PENDING, True)
    assert store.find_thread_run("t") == driver.record()
    with store.atomic():
        assert store.claim(run.id, "worker") is None
    (row,) = store.list_journal(run.id)
    assert [e.kind for e in row.events] == ["run.admitted", "run.queued"]
    assert row.events[1].data == {"behind": driver.run.id}
    driver.commit()
    assert again(store, run).is_queued
    with pytest.raises(ThreadBusyError, match=driver.run.id), store.atomic():
        store.admit(admission("t"))


def ended(driver: HandDriver, status: RunStatus) -> None:
    driver.commit(changes={"mark": "first"}, status=status)


def limited(driver: HandDriver, _status: RunStatus) -> None:
    with driver.store.atomic():
        driver.store.finish(driver.fence, RunStatus.FAILED, error={}, events=())


def cancelled(driver: HandDriver, _status: RunStatus) -> None:
    driver.commit(status=RunStatus.INTERRUPTED)
    cancel(driver.store, driver.run.id)


def asked(driver: HandDriver, status: RunStatus) -> None:
    cancel(driver.store, driver.run.id)
    driver.commit(status=status)


def settled(driver: HandDriver, _status: RunStatus) -> None:
    store = driver.store
    with store.atomic():
        told = (CLOSING_EVENT,)
        store.finish(driver.fence, RunStatus.CLOSING, error=None, events=told)
    assert store.find_thread_run("t") == driver.record()
    with store.atomic():
        assert store.settle(driver.run.id, {})


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
@pytest.mark.parametrize("end", [ended, limited, cancelled, asked, settled])
def test_queued_run_begins_with_the_end_of_the_one_before(
    store: Store, end: Callable[[HandDriver, RunStatus], None], status: RunStatus
) -> None:
    """Decision 11: in the same transaction, behind what that run left."""
    driver = HandDriver(store)
    driver.commit()
    run = enqueue(store, values={"mark": "second"})
    end(driver, status)
    run = again(store, run)
    assert (run.status, run.is_queued) == (RunStatus.PENDING, False)
    assert store.find_thread_run("t") == run
    head = store.find_checkpoint("t")
    assert head is not None
    assert (head.id, head.parent_id) == (run.head_id, driver.record().head_id)
    assert head.values == {"log": [], "mark": "second"}
    assert [a.node for a in head.pending] == ["a"]
    assert head.lineage == head.sequence == run.sequence > driver.record().sequence
    with store.atomic():
        assert store.claim(run.id, "worker") is not None


def test_queued_runs_begin_in_order(store: Store) -> None:
    driver = HandDriver(store)
    waiting = [enqueue(store) for _ in range(3)]
    driver.commit(status=RunStatus.COMPLETED)
    for run in waiting:
        assert store.find_thread_run("t") == again(store, run)
        assert enqueue(store, "other-" + run.id).is_queued is False
        driver.run = run
        assert driver.claim() is not None
        with store.atomic():
            store.finish(driver.fence, RunStatus.FAILED, error={}, events=())
    assert [again(store, run).is_queued for run in waiting] == [False] * 3


def test_run_that_waits_or_asks_is_waited_for(store: Store) -> None:
    driver = HandDriver(store)
    run = enqueue(store)
    driver.commit(status=RunStatus.INTERRUPTED)
    assert again(store, run).is_queued


def test_pe_queued_run_that_is_cancelled_does_not_stall_the_rest(store: Store) -> None:
    """Start under enqueue, cancel the queued one: the next begins in its turn."""
    driver = HandDriver(store)
    first, second = enqueue(store), enqueue(store)
    cancel(store, first.id)
    assert again(store, first).status is RunStatus.CANCELLED
    assert again(store, second).is_queued
    driver.commit(status=RunStatus.COMPLETED)
    assert store.find_thread_run("t") == again(store, second)
    assert again(store, first).status is RunStatus.CANCELLED


def test_what_did_not_commit_begins_nothing(store: Store) -> None:
    driver = HandDriver(store)
    run = enqueue(store)
    boundary = driver.boundary(driver.next_draft(), status=RunStatus.COMPLETED)

    def undone() -> None:
        with store.atomic():
            store.commit(driver.fence, boundary)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert again(store, run).is_queued
    assert driver.record().status is RunStatus.RUNNING
