"""A stored request to cancel, on both stores. See Note [Rests as cancelled]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import LeaseError, NotFoundError, RunError
from stateknot.kernel.records import Event, Fence
from stateknot.kernel.vocabulary import AttemptStatus, RunStatus, WaitKind
from stateknot.kernel.writes import Cancellation, Deferral
from tests.storage.hand_driver import (
    HandDriver,
    admission,
    attempt,
    everything,
    new_id,
    pending,
    question,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store


def cancel(store: Store, run_id: str, reason: str = "enough") -> RunRecord:
    with store.atomic():
        return store.cancel(Cancellation(run_id=run_id, reason=reason, actor="ada"))


def told(store: Store, run_id: str) -> list[str]:
    return [event.kind for row in store.list_journal(run_id) for event in row.events]


def end_of(store: Store, run_id: str) -> Event:
    rows = store.list_journal(run_id)
    (found,) = [e for row in rows for e in row.events if e.kind == "run.cancelled"]
    return found


def admitted_child(store: Store, parent: HandDriver, name: str, **changes: Any) -> Any:
    """A child run under its parent's namespace, driven until it is brought to rest."""
    return HandDriver(
        store,
        namespace=(name,),
        parent_run_id=parent.run.id,
        root_run_id=parent.run.id,
        **changes,
    )


def test_run_that_nobody_drives_ends_at_once(store: Store) -> None:
    request = admission("t")
    with store.atomic():
        store.admit(request)
    run = cancel(store, request.run_id)
    assert (run.status, run.cancel_reason) == (RunStatus.CANCELLED, "enough")
    assert run.ended_at is not None
    (_, row) = store.list_journal(run.id)
    assert row.actor == "ada"
    assert [e.kind for e in row.events] == ["run.cancel_requested", "run.cancelled"]
    assert row.events[0].data == {"reason": "enough"}
    with store.atomic():
        assert store.claim(run.id, "worker") is None
        assert store.admit(admission("t")).status is RunStatus.PENDING


@pytest.mark.parametrize("kind", [WaitKind.INTERRUPT, WaitKind.TIMER])
def test_what_a_run_waits_for_is_closed_with_it(store: Store, kind: WaitKind) -> None:
    driver = HandDriver(store)
    due = {"due_in_seconds": 60.0} if kind is WaitKind.TIMER else {}
    asked = question("1:0:a", 1, kind=kind, **due)
    waits = kind is WaitKind.TIMER
    status = RunStatus.WAITING if waits else RunStatus.INTERRUPTED
    driver.commit(status=status, waits=(asked,), of={"pending": pending("a")})
    run = cancel(store, driver.run.id)
    assert (run.status, run.wake_at) == (RunStatus.CANCELLED, None)
    assert store.list_waits("t") == []
    assert end_of(store, run.id).data["waits"] == [asked.id]


def test_closing_run_ends_without_its_usage(store: Store) -> None:
    driver = HandDriver(store)
    with store.atomic():
        store.finish(
            driver.fence, RunStatus.CLOSING, error=None, events=(Event(kind="limit"),)
        )
    assert cancel(store, driver.run.id).status is RunStatus.CANCELLED
    with store.atomic():
        assert not store.settle(driver.run.id, {})
    assert driver.record().status is RunStatus.CANCELLED


def test_driven_run_is_asked_and_goes_no_further(store: Store) -> None:
    """A boundary that would go on is stored; its driver is told."""
    driver = HandDriver(store)
    driver.commit(appends={"log": [["one"]]})
    assert not store.renew(driver.fence)
    run = cancel(store, driver.run.id)
    assert (run.status, run.is_to_be_cancelled) == (RunStatus.RUNNING, True)
    assert store.renew(driver.fence)
    with store.atomic():
        assert store.commit(driver.fence, driver.boundary(driver.next_draft()))
    assert driver.record().sequence == 2
    with store.atomic():
        assert store.finish(driver.fence, RunStatus.CANCELLED, error=None, events=())
    assert driver.record().status is RunStatus.CANCELLED
    assert told(store, run.id)[-1] == "run.cancelled"


@pytest.mark.parametrize(
    "status",
    [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED, RunStatus.WAITING],
)
def test_wq_19_late_boundary_cannot_change_the_status(
    store: Store, status: RunStatus
) -> None:
    """WQ-19: whatever the run came to, it is cancelled, and its result is kept."""
    driver = HandDriver(store)
    driver.commit(changes={"mark": "first"})
    cancel(store, driver.run.id)
    last = driver.next_draft(changes={"mark": "late"}, pending=pending("a"))
    ends = (Event(kind="checkpoint.saved"),)
    if status.is_terminal:
        ends += (Event(kind=f"run.{status}"),)
    waits = (question("1:0:a", 2),) if status is RunStatus.INTERRUPTED else ()
    error = {"node": "a", "code": "x"} if status is RunStatus.FAILED else None
    boundary = driver.boundary(
        last, status=status, events=ends, waits=waits, error=error, output={"of": "a"}
    )
    with store.atomic():
        assert store.commit(driver.fence, boundary)
    run = driver.record()
    assert (run.status, run.error, run.output) == (RunStatus.CANCELLED, None, None)
    assert run.ended_at is not None
    assert run.wake_at is None
    record = store.find_checkpoint("t")
    assert record is not None
    assert record.values["mark"] == "late"
    assert store.list_waits("t") == []
    assert told(store, run.id)[-2:] == ["checkpoint.saved", "run.cancelled"]


def test_request_is_noticed_behind_several_boundaries(store: Store) -> None:
    """The asynchronous writer commits on before its driver hears of it."""
    driver = HandDriver(store)
    driver.commit()
    cancel(store, driver.run.id)
    driver.commit()
    driver.commit()
    driver.commit(status=RunStatus.COMPLETED)
    assert driver.record().status is RunStatus.CANCELLED


def deferred(driver: HandDriver) -> bool:
    return driver.store.defer(driver.fence, Deferral(delay_seconds=60))


def limited(driver: HandDriver) -> bool:
    error = {"node": "a", "code": "limit"}
    return driver.store.finish(
        driver.fence, RunStatus.FAILED, error=error, events=(Event(kind="run.failed"),)
    )


def released(driver: HandDriver) -> bool:
    return not driver.store.release(driver.fence)


@pytest.mark.parametrize("rest", [deferred, limited, released])
def test_driver_that_gives_a_cancelled_run_back_ends_it(
    store: Store, rest: Callable[[HandDriver], bool]
) -> None:
    driver = HandDriver(store)
    cancel(store, driver.run.id)
    with store.atomic():
        assert rest(driver)
    run = driver.record()
    assert (run.status, run.error, run.wake_at) == (RunStatus.CANCELLED, None, None)
    kinds = ["run.admitted", "run.cancel_requested", "run.cancelled"]
    assert told(store, run.id) == kinds


def test_finished_results_of_a_cancelled_run_are_kept(store: Store) -> None:
    driver = HandDriver(store)
    cancel(store, driver.run.id)
    done = attempt("1:0:a", 1, result={"update": {}})
    with store.atomic():
        store.record_attempts(driver.fence, [done], ())
        store.finish(driver.fence, RunStatus.CANCELLED, error=None, events=())
    (kept,) = store.list_results(driver.record())
    assert (kept.id, kept.status) == (done.id, AttemptStatus.SUCCEEDED)


def test_first_request_is_kept(store: Store) -> None:
    driver = HandDriver(store)
    first = cancel(store, driver.run.id, "first")
    again = cancel(store, driver.run.id, "second")
    assert again == first
    assert told(store, driver.run.id).count("run.cancel_requested") == 1


def test_cancelled_run_stays_as_it_is(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(status=RunStatus.INTERRUPTED)
    cancel(store, driver.run.id)
    before = everything(store, driver.run.id)
    cancel(store, driver.run.id, "again")
    assert everything(store, driver.run.id) == before


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
def test_run_that_ended_is_not_cancelled(store: Store, status: RunStatus) -> None:
    driver = HandDriver(store)
    driver.commit(status=status)
    before = everything(store, driver.run.id)
    with pytest.raises(RunError, match=str(status)), store.atomic():
        store.cancel(Cancellation(run_id=driver.run.id))
    assert everything(store, driver.run.id) == before


def test_unknown_run_is_not_cancelled(store: Store) -> None:
    with pytest.raises(NotFoundError), store.atomic():
        store.cancel(Cancellation(run_id=new_id()))


def test_wq_20_children_end_with_their_parent(store: Store) -> None:
    """WQ-20: one is paused, one is driven; the driven one is asked first."""
    parent = HandDriver(store)
    paused = admitted_child(store, parent, "1:0:p")
    asked = question("1:0:a", 1, namespace=("1:0:p",))
    paused.commit(status=RunStatus.INTERRUPTED, waits=(asked,))
    driven = admitted_child(store, parent, "1:1:d")
    cancel(store, parent.run.id)
    assert paused.record().status is RunStatus.CANCELLED
    assert store.list_waits("t", ("1:0:p",)) == []
    assert end_of(store, paused.run.id).data["waits"] == [asked.id]
    assert driven.record().status is RunStatus.RUNNING
    assert store.renew(driven.fence)
    driven.commit(status=RunStatus.COMPLETED)
    parent.commit(status=RunStatus.COMPLETED)
    statuses = {d.record().status for d in (parent, paused, driven)}
    assert statuses == {RunStatus.CANCELLED}


def test_wq_20_child_that_does_not_stop_ends_with_its_parent(store: Store) -> None:
    """WQ-20: a job that goes on after its parent's end can write nothing."""
    parent = HandDriver(store)
    child = admitted_child(store, parent, "1:0:c")
    cancel(store, parent.run.id)
    with store.atomic():
        store.finish(parent.fence, RunStatus.CANCELLED, error=None, events=())
    assert child.record().status is RunStatus.CANCELLED
    with pytest.raises(LeaseError), store.atomic():
        store.commit(child.fence, child.boundary(child.next_draft()))
    with pytest.raises(LeaseError):
        store.renew(Fence(run_id=child.run.id, epoch=1, holder=child.fence.holder))


def test_child_is_cancelled_with_its_root_only(store: Store) -> None:
    parent = HandDriver(store)
    child = admitted_child(store, parent, "1:0:c")
    with pytest.raises(RunError, match=parent.run.id), store.atomic():
        store.cancel(Cancellation(run_id=child.run.id))
    assert not child.record().is_to_be_cancelled
