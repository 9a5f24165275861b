"""Manual writes and forks, on both stores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stateknot.errors import StaleCheckpointError, ThreadBusyError
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus, WaitStatus
from stateknot.kernel.writes import ThreadFork
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
    from stateknot.kernel.store import Store

WAITING = pending("a")


def rest(store: Store, status: RunStatus = RunStatus.FAILED) -> HandDriver:
    driver = HandDriver(store)
    driver.commit(changes={"mark": "run"}, status=status, of={"pending": WAITING})
    return driver


def fork_of(driver: HandDriver, target: str) -> ThreadFork:
    """A fork of the driver's newest checkpoint, with a question and a result."""
    request = admission(target)
    draft = replace(
        driver.draft,
        id=request.checkpoint_id,
        sequence=0,
        lineage=0,
        parent_id=None,
        source=CheckpointSource.FORK,
        delta=StateDelta(changes={"log": [], "mark": "run"}),
    )
    return ThreadFork(
        admission=request,
        checkpoint=draft,
        waits=(question("1:0:a", 0),),
        attempts=(attempt("1:0:a", 0, result={}),),
    )


def test_manual_write_becomes_the_head(store: Store) -> None:
    driver = rest(store)
    before = driver.draft.id
    draft = driver.write(changes={"mark": "hand"}, actor="ada")
    found = store.find_checkpoint("t")
    assert found is not None
    assert (found.id, found.parent_id, found.run_id) == (draft.id, before, None)
    assert (found.values["mark"], found.source) == ("hand", CheckpointSource.UPDATE)
    run = driver.record()
    assert (run.head_id, run.status) == (draft.id, RunStatus.FAILED)
    row = store.list_journal(run.id)[-1]
    assert (row.actor, row.checkpoint_id) == ("ada", draft.id)


def test_manual_write_on_a_stale_head_is_refused(store: Store) -> None:
    driver = rest(store)
    driver.write(changes={"mark": "first"})
    before = everything(store, driver.run.id)
    with pytest.raises(StaleCheckpointError) as raised:
        driver.write(expected_head=driver.draft.parent_id)
    assert driver.draft.id in str(raised.value)
    assert everything(store, driver.run.id) == before


def test_manual_write_while_driven_is_refused(store: Store) -> None:
    """Decision 5: edits are refused while the run is being driven."""
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    with pytest.raises(ThreadBusyError):
        driver.write(changes={"mark": "hand"})
    assert everything(store, driver.run.id) == before


def test_manual_write_closes_what_its_node_leaves(store: Store) -> None:
    driver = HandDriver(store)
    asked, kept = question("1:0:a", 1), attempt("1:0:a", 1, result={})
    driver.commit(
        status=RunStatus.INTERRUPTED,
        waits=(asked,),
        attempts=(kept,),
        of={"pending": WAITING},
    )
    driver.write(closed_waits=(asked.id,), dropped_attempts=(kept.id,))
    assert store.list_waits("t") == []
    assert store.list_results(driver.record()) == []


def test_driver_goes_on_behind_a_manual_write(store: Store) -> None:
    driver = rest(store)
    driver.write(changes={"mark": "hand"})
    driver.claim_again()
    driver.commit(appends={"log": ["after"]})
    found = store.find_checkpoint("t")
    assert found is not None
    assert found.values == {"log": ["after"], "mark": "hand"}
    assert [r.sequence for r in store.list_checkpoints("t")] == [3, 2, 1, 0]


def test_fork_begins_a_thread_that_waits(store: Store) -> None:
    driver = rest(store)
    fork = fork_of(driver, "copy")
    with store.atomic():
        run = store.fork(fork)
    assert (run.status, run.thread_id) == (RunStatus.INTERRUPTED, "copy")
    found = store.find_checkpoint("copy")
    assert found is not None
    assert (found.id, found.source) == (fork.checkpoint.id, CheckpointSource.FORK)
    assert found.values == {"log": [], "mark": "run"}
    assert found.parent_id is None


def test_fork_takes_questions_and_results_along(store: Store) -> None:
    fork = fork_of(rest(store), "copy")
    with store.atomic():
        run = store.fork(fork)
    (wait,) = store.list_waits("copy")
    assert (wait.id, wait.status) == (fork.waits[0].id, WaitStatus.OPEN)
    assert (wait.run_id, wait.thread_id) == (run.id, "copy")
    assert [a.id for a in store.list_results(run)] == [fork.attempts[0].id]


def test_fork_of_an_ended_checkpoint_is_complete(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(status=RunStatus.COMPLETED, of={"pending": ()})
    with store.atomic():
        run = store.fork(fork_of(driver, "copy"))
    assert run.status is RunStatus.COMPLETED


def test_fork_leaves_the_source_as_it_was(store: Store) -> None:
    driver = rest(store)
    before = everything(store, driver.run.id)
    with store.atomic():
        store.fork(fork_of(driver, "copy"))
    assert everything(store, driver.run.id) == before


def test_fork_onto_a_held_thread_is_refused(store: Store) -> None:
    driver = rest(store)
    target = HandDriver(store, "copy")
    before = everything(store, target.run.id)
    with pytest.raises(ThreadBusyError), store.atomic():
        store.fork(fork_of(driver, "copy"))
    assert everything(store, target.run.id) == before


def test_two_writes_of_a_failing_block_leave_nothing(store: Store) -> None:
    """A bulk update is all or none."""
    driver = rest(store)
    before = everything(store, driver.run.id)
    head = driver.draft
    with pytest.raises(StaleCheckpointError):  # noqa: PT012, SIM117 - the block is the subject
        with store.atomic():
            driver.write(changes={"mark": "one"})
            driver.write(expected_head=new_id())
    assert everything(store, driver.run.id) == before
    driver.draft = head
    driver.write(changes={"mark": "two"})
