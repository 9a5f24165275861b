"""The life of a run's row, on both stores: admit, commit, release, finish, reopen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stateknot.errors import RunError, ThreadBusyError
from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus
from stateknot.kernel.writes import Reopening
from tests.storage.hand_driver import HandDriver, admission, attempt, everything

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

RESTING = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED]
REASON = {"node": "a", "code": "node.failed", "message": "no"}


def test_admitted_run_exists_with_its_input_record(store: Store) -> None:
    """EX-02: what was accepted is there before anything was driven."""
    request = admission("t", {"mark": "given"}, step_limit=7, actor="ada")
    with store.atomic():
        run = store.admit(request)
    assert run == store.find_run(request.run_id)
    assert (run.status, run.epoch, run.steps) == (RunStatus.PENDING, 0, 0)
    assert (run.step_limit, run.actor) == (7, "ada")
    record = store.find_checkpoint("t")
    assert record is not None
    assert (record.id, record.source) == (run.head_id, CheckpointSource.INPUT)
    assert record.values == {"log": [], "mark": "given"}
    assert (record.step, record.sequence, record.lineage) == (0, 0, 0)


def test_run_admitted_with_a_holder_is_claimed_at_once(store: Store) -> None:
    driver = HandDriver(store)
    run = driver.record()
    assert (run.status, run.epoch) == (RunStatus.RUNNING, 1)
    assert run.started_at is not None


@pytest.mark.parametrize("status", [*RESTING, RunStatus.RUNNING])
def test_second_run_is_refused_only_while_one_holds_the_thread(
    store: Store, status: RunStatus
) -> None:
    driver = HandDriver(store)
    driver.commit(status=status)
    before = everything(store, driver.run.id)
    request = admission("t")
    if status.is_terminal:
        with store.atomic():
            assert store.admit(request).sequence == 2
        return
    with pytest.raises(ThreadBusyError) as raised, store.atomic():
        store.admit(request)
    assert driver.run.id in str(raised.value)
    assert everything(store, driver.run.id) == before
    assert store.find_run(request.run_id) is None


def test_run_in_a_namespace_does_not_hold_the_root(store: Store) -> None:
    HandDriver(store)
    HandDriver(store, namespace=("outer",))
    with pytest.raises(ThreadBusyError), store.atomic():
        store.admit(admission("t", namespace=("outer",)))


def test_thread_of_another_graph_is_refused(store: Store) -> None:
    """A thread is a lineage of checkpoints of one graph."""
    HandDriver(store).commit(status=RunStatus.COMPLETED)
    request = admission("t", graph_id="tests.other")
    with pytest.raises(RunError, match=r"tests\.contract"), store.atomic():
        store.admit(request)
    assert store.find_run(request.run_id) is None


def test_commit_moves_the_head_of_the_run(store: Store) -> None:
    driver = HandDriver(store)
    draft = driver.commit(changes={"mark": "x"}, steps=1)
    run = driver.record()
    assert (run.head_id, run.sequence, run.steps) == (draft.id, 1, 1)
    assert (run.status, run.ended_at) == (RunStatus.RUNNING, None)


@pytest.mark.parametrize("status", RESTING)
def test_commit_that_rests_gives_the_lease_back(
    store: Store, status: RunStatus
) -> None:
    driver = HandDriver(store)
    driver.commit(status=status, error=REASON, output={"total": 3})
    run = driver.record()
    assert (run.status, run.error, run.output) == (status, REASON, {"total": 3})
    assert (run.ended_at is not None) is status.is_terminal


def test_commit_keeps_what_a_checkpoint_says(store: Store) -> None:
    driver = HandDriver(store)
    draft = driver.commit(
        of={"metadata": {"failed_node": "a"}, "source": CheckpointSource.FAILURE}
    )
    found = store.find_checkpoint("t")
    assert found is not None
    assert (found.metadata, found.source) == ({"failed_node": "a"}, draft.source)
    assert (found.pending, found.step) == (draft.pending, 1)
    assert (found.run_id, found.parent_id) == (driver.run.id, driver.run.head_id)


def test_failing_transaction_stores_nothing(store: Store) -> None:
    """A boundary that was written in a block which fails afterwards never was."""
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    boundary = driver.boundary(driver.next_draft(changes={"mark": "gone"}))
    with pytest.raises(ThreadBusyError):  # noqa: PT012, SIM117 - the block is the subject
        with store.atomic():
            store.commit(driver.fence, boundary)
            store.admit(admission("t"))
    assert everything(store, driver.run.id) == before
    driver.commit(changes={"mark": "kept"})
    found = store.find_checkpoint("t")
    assert found is not None
    assert (found.sequence, found.values["mark"]) == (1, "kept")


def test_released_run_wants_to_be_driven_again(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit()
    with store.atomic():
        assert store.release(driver.fence) is True
    assert driver.record().status is RunStatus.PENDING


def test_finish_keeps_the_last_boundary(store: Store) -> None:
    driver = HandDriver(store)
    draft = driver.commit()
    with store.atomic():
        store.finish(driver.fence, RunStatus.FAILED, error=REASON, events=[])
    run = driver.record()
    assert (run.status, run.error, run.head_id) == (RunStatus.FAILED, REASON, draft.id)
    assert run.ended_at is not None
    assert store.last_sequence("t") == 1


def test_reopened_run_is_pending_from_its_head(store: Store) -> None:
    driver = HandDriver(store)
    draft = driver.commit(status=RunStatus.FAILED, error=REASON)
    with store.atomic():
        run = store.reopen(Reopening(run_id=driver.run.id, step_limit=9))
    assert (run.status, run.error, run.ended_at) == (RunStatus.PENDING, None, None)
    assert (run.head_id, run.step_limit) == (draft.id, 9)
    assert run == driver.record()


def test_reopened_run_has_no_output_of_its_earlier_end(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(status=RunStatus.COMPLETED, output="old")
    with store.atomic():
        store.reopen(Reopening(run_id=driver.run.id))
    assert driver.record().output is None
    driver.claim()
    driver.commit(status=RunStatus.COMPLETED)
    assert driver.record().output is None


def test_reopen_of_a_driven_run_is_refused(store: Store) -> None:
    driver = HandDriver(store)
    before = everything(store, driver.run.id)
    reopening = Reopening(run_id=driver.run.id, events=(Event(kind="run.reopened"),))
    with pytest.raises(ThreadBusyError), store.atomic():
        store.reopen(reopening)
    assert everything(store, driver.run.id) == before


def test_reopen_while_a_newer_run_holds_the_thread_is_refused(store: Store) -> None:
    """Decision 11: a failed run is retried unless a newer one holds the thread."""
    old = HandDriver(store)
    old.commit(status=RunStatus.FAILED, error=REASON)
    newer = HandDriver(store)
    with pytest.raises(ThreadBusyError, match=newer.run.id), store.atomic():
        store.reopen(Reopening(run_id=old.run.id))
    assert old.record().status is RunStatus.FAILED


def test_reopened_older_run_becomes_the_current_one(store: Store) -> None:
    old = HandDriver(store)
    last = old.commit(changes={"mark": "old"}, status=RunStatus.FAILED)
    HandDriver(store).commit(status=RunStatus.COMPLETED)
    with store.atomic():
        store.reopen(Reopening(run_id=old.run.id, head_id=last.id, lineage=4))
    found = store.find_checkpoint("t")
    assert found is not None
    assert found.id == last.id
    current = store.find_thread_run("t")
    assert current is not None
    assert (current.id, current.lineage) == (old.run.id, 4)


def test_attempts_between_boundaries_are_kept(store: Store) -> None:
    driver = HandDriver(store)
    tried = attempt("1:0:a", 1, error=REASON)
    with store.atomic():
        store.record_attempts(driver.fence, [tried], [Event(kind="node.retry")])
    driver.commit(attempts=(attempt("1:0:a", 1, number=2),))
    numbers = [item.number for item in store.list_attempts(driver.run.id)]  # type: ignore[attr-defined]
    assert numbers == [1, 2]


def test_reopened_run_of_a_namespace_leaves_the_root_current(store: Store) -> None:
    root = HandDriver(store)
    child = HandDriver(store, namespace=("outer",), parent_run_id=root.run.id)
    child.commit(status=RunStatus.FAILED, error=REASON)
    child.claim_again()
    found = store.find_checkpoint("t")
    current = store.find_thread_run("t")
    assert found is not None
    assert current is not None
    assert (found.id, current.id) == (root.draft.id, root.run.id)


def test_admission_writes_no_thread_that_it_refuses(store: Store) -> None:
    with pytest.raises(RunError, match="thread id"), store.atomic():
        store.admit(admission("x" * 256))
    with pytest.raises(RunError, match="NUL"), store.atomic():
        store.admit(admission("x\x00"))
