"""Handing a run over: closing, settling, moving, and doing any of it twice.

Scenarios are those of spec/composition.md, section 5; over both stores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import LeaseError, StaleCheckpointError, ThreadBusyError
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import Event
from stateknot.kernel.usage import CLOSING
from stateknot.kernel.vocabulary import CheckpointSource, RunStatus
from stateknot.kernel.writes import Move
from tests.storage.hand_driver import HandDriver, attempt, everything, new_id, pending

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

FAILURE = {"code": "limit", "message": "too far", "node": "a"}
OTHER = "sha256:" + "b" * 64


@pytest.fixture
def closing(store: Store) -> HandDriver:
    """A run that stopped at a limit and whose usage is not known."""
    driver = HandDriver(store)
    driver.commit(attempts=(attempt("1:0:a", 1, usage={"tokens": 2}),))
    event = Event(kind=CLOSING, data={"failure": FAILURE})
    with store.atomic():
        store.finish(driver.fence, RunStatus.CLOSING, error=None, events=[event])
    return driver


def settle(driver: HandDriver, usage: Any) -> bool:
    with driver.store.atomic():
        return driver.store.settle(driver.run.id, usage)


def test_closing_run_records_nothing_and_is_not_claimed(closing: HandDriver) -> None:
    """Scenario 78."""
    record = closing.record()
    assert (record.status, record.error) == (RunStatus.CLOSING, None)
    assert closing.claim() is None


def test_settled_run_failed_with_the_first_failure(closing: HandDriver) -> None:
    """Scenario 79."""
    assert settle(closing, {"tokens": 2})
    record = closing.record()
    assert record.status is RunStatus.FAILED
    assert record.error == {**FAILURE, "usage": {"tokens": 2}}
    assert record.ended_at is not None


def test_settling_again_changes_nothing(closing: HandDriver) -> None:
    """Scenario 79: idempotent, whatever it brings."""
    settle(closing, {"tokens": 2})
    before = everything(closing.store, closing.run.id)
    assert not settle(closing, {"tokens": 99})
    assert everything(closing.store, closing.run.id) == before


def test_usage_is_that_of_all_attempts(closing: HandDriver) -> None:
    usage = closing.store.measure_usage(closing.run.id)
    assert (dict(usage.amounts), usage.is_complete) == ({"tokens": 2}, True)


@pytest.mark.parametrize(
    "status", [RunStatus.WAITING, RunStatus.COMPLETED, RunStatus.FAILED]
)
def test_boundary_committed_twice_is_refused_the_second_time(
    status: RunStatus, store: Store
) -> None:
    """Scenarios 81, 82: a hand-over whose answer was lost; the run gave its lease."""
    driver = HandDriver(store)
    boundary = driver.boundary(driver.next_draft(), status=status)
    with store.atomic():
        store.commit(driver.fence, boundary)
    before = everything(store, driver.run.id)
    with pytest.raises(LeaseError), store.atomic():
        store.commit(driver.fence, boundary)
    assert everything(store, driver.run.id) == before


def move(driver: HandDriver, **changes: Any) -> Move:
    fields: dict[str, Any] = {
        "run_id": driver.run.id,
        "expected_head": driver.draft.id,
        "digest": OTHER,
        "graph_version": "2.0.0",
        "definition": {"graph": "other"},
        "events": (Event(kind="run.moved"),),
        "actor": "ann",
    }
    return Move(**(fields | changes))


@pytest.fixture
def idle(store: Store) -> HandDriver:
    """A run that is due and that nobody drives."""
    driver = HandDriver(store)
    driver.commit(changes={"mark": "x"}, of={"pending": pending("a")})
    with store.atomic():
        store.release(driver.fence)
    return driver


def test_moved_run_is_pinned_to_the_other_revision(idle: HandDriver) -> None:
    with idle.store.atomic():
        moved = idle.store.move(move(idle))
    assert moved == idle.record()
    assert (moved.digest, moved.head_id) == (OTHER, idle.draft.id)
    row = idle.store.list_journal(idle.run.id)[-1]
    assert (row.actor, row.events) == ("ann", (Event(kind="run.moved"),))


def test_move_with_a_checkpoint_stands_on_it(idle: HandDriver) -> None:
    """The head before is kept as it was."""
    before = idle.store.find_checkpoint("t", idle.draft.id)
    draft = idle.next_draft(
        changes={"mark": "y"}, source=CheckpointSource.UPDATE, pending=pending("b")
    )
    with idle.store.atomic():
        idle.store.move(move(idle, checkpoint=draft))
    head = idle.store.find_checkpoint("t")
    assert head is not None
    assert (head.id, head.values["mark"], head.next_nodes) == (draft.id, "y", ["b"])
    assert idle.store.find_checkpoint("t", idle.draft.id) == before
    assert idle.record().sequence == draft.sequence


def test_move_takes_a_field_out_of_the_state(idle: HandDriver) -> None:
    """VD-06: what stands in older rows is not read behind the move."""
    before = idle.store.find_checkpoint("t", idle.draft.id)
    draft = replace(
        idle.next_draft(source=CheckpointSource.UPDATE, pending=pending("a")),
        delta=StateDelta(drops=("mark",)),
    )
    with idle.store.atomic():
        idle.store.move(move(idle, checkpoint=draft))
    head = idle.store.find_checkpoint("t")
    assert before is not None
    assert head is not None
    assert head.values == {k: v for k, v in before.values.items() if k != "mark"}
    assert "mark" in before.values
    assert idle.store.find_checkpoint("t", before.id) == before


def test_move_of_a_driven_run_is_refused(store: Store) -> None:
    driver = HandDriver(store)
    with pytest.raises(ThreadBusyError), store.atomic():
        store.move(move(driver))


def test_move_decided_at_another_head_is_refused(idle: HandDriver) -> None:
    with pytest.raises(StaleCheckpointError), idle.store.atomic():
        idle.store.move(move(idle, expected_head=new_id()))
    assert idle.record().digest != OTHER
