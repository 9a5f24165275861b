"""A driver that lost its lease can write nothing, on both stores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import LeaseError
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import RunStatus
from tests.storage.hand_driver import HandDriver, attempt, everything, question

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.records import Fence
    from stateknot.kernel.store import Store


def commit(driver: HandDriver, fence: Fence) -> Any:
    boundary = driver.boundary(
        driver.next_draft(changes={"mark": "stale"}),
        attempts=(attempt("1:0:a", 1),),
        waits=(question("1:0:a", 1),),
    )
    return driver.store.commit(fence, boundary)


def record_attempts(driver: HandDriver, fence: Fence) -> Any:
    lost = [attempt("1:0:a", 1)]
    return driver.store.record_attempts(fence, lost, [Event(kind="node.failed")])


def finish(driver: HandDriver, fence: Fence) -> Any:
    events = [Event(kind="run.failed")]
    return driver.store.finish(fence, RunStatus.FAILED, error=None, events=events)


def release(driver: HandDriver, fence: Fence) -> Any:
    return driver.store.release(fence)


def renew(driver: HandDriver, fence: Fence) -> Any:
    return driver.store.renew(fence)


WRITES = [commit, record_attempts, finish, release, renew]


def refuse(
    driver: HandDriver, write: Callable[[HandDriver, Fence], Any], fence: Fence
) -> None:
    """Assert that `write` is refused under `fence` and leaves everything as it was."""
    before = everything(driver.store, driver.run.id)
    with pytest.raises(LeaseError), driver.store.atomic():
        write(driver, fence)
    assert everything(driver.store, driver.run.id) == before


@pytest.mark.parametrize("write", WRITES)
def test_wq_16_write_after_another_took_over_is_refused(
    store: Store, write: Callable[[HandDriver, Fence], Any]
) -> None:
    """WQ-16: both stand at one head; the history gets one successor of it."""
    driver = HandDriver(store)
    driver.commit()
    old = driver.fence
    with store.atomic():
        store.release(old)
    assert driver.claim() is not None
    refuse(driver, write, old)


@pytest.mark.parametrize("write", WRITES)
def test_write_after_the_run_came_to_rest_is_refused(
    store: Store, write: Callable[[HandDriver, Fence], Any]
) -> None:
    driver = HandDriver(store)
    driver.commit(status=RunStatus.COMPLETED, of={"pending": ()})
    refuse(driver, write, driver.fence)


@pytest.mark.parametrize("write", WRITES)
def test_write_under_another_name_is_refused(
    store: Store, write: Callable[[HandDriver, Fence], Any]
) -> None:
    """The epoch alone does not prove a holder: the name must match as well."""
    driver = HandDriver(store)
    refuse(driver, write, replace(driver.fence, holder="impostor"))


@pytest.mark.parametrize("write", WRITES)
def test_write_of_the_new_holder_is_taken(
    store: Store, write: Callable[[HandDriver, Fence], Any]
) -> None:
    driver = HandDriver(store)
    with store.atomic():
        store.release(driver.fence)
    fence = driver.claim()
    assert fence is not None
    with store.atomic():
        write(driver, fence)


def test_claim_of_a_held_run_gives_nothing(store: Store) -> None:
    """PF-15: two workers that were woken for one run do not both drive it."""
    driver = HandDriver(store)
    assert driver.claim() is None
    assert driver.record().epoch == 1


def test_claim_after_a_release_raises_the_epoch(store: Store) -> None:
    driver = HandDriver(store)
    with store.atomic():
        assert store.release(driver.fence) is True
    fence = driver.claim()
    assert fence is not None
    assert fence.epoch == 2


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.INTERRUPTED])
def test_claim_of_a_run_at_rest_gives_nothing(store: Store, status: RunStatus) -> None:
    driver = HandDriver(store)
    driver.commit(status=status)
    assert driver.claim() is None


@pytest.mark.parametrize("run_id", ["019a0000-0000-7000-8000-000000000000", "nonsense"])
def test_claim_of_an_unknown_run_gives_nothing(store: Store, run_id: str) -> None:
    with store.atomic():
        assert store.claim(run_id, "worker-2") is None
