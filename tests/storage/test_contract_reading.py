"""Reading threads, on both stores: checks of section 7.1 that the port has.

The ids of checkpoints are unique here, so a reused id (check 3 of the first suite) does
not occur; pruning, copying and deleting come with later operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stateknot.kernel.vocabulary import RunStatus
from tests.storage.hand_driver import HandDriver, admission, new_id

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

CHILD = ("outer", "2:0:call")
UNKNOWN = "019a0000-0000-7000-8000-000000000000"


def test_newest_is_the_last_that_was_committed(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(changes={"mark": "first"})
    second = driver.commit(changes={"mark": "second"})
    found = store.find_checkpoint("t")
    assert found is not None
    assert (found.id, found.values["mark"]) == (second.id, "second")


def test_older_checkpoint_is_found_by_its_id(store: Store) -> None:
    driver = HandDriver(store)
    first = driver.commit(changes={"mark": "first"})
    driver.commit(changes={"mark": "second"})
    found = store.find_checkpoint("t", first.id)
    assert found is not None
    assert (found.sequence, found.values["mark"]) == (1, "first")


@pytest.mark.parametrize("key", ["nobody", "", "a\x00b", "\ud800"])
def test_unknown_thread_has_nothing(store: Store, key: str) -> None:
    """A reader may ask with text that no thread can have."""
    assert store.find_checkpoint(key) is None
    assert store.find_checkpoint(key, UNKNOWN) is None
    assert store.list_checkpoints(key) == []
    assert store.find_thread_run(key) is None
    assert store.list_waits(key) == []
    assert store.last_sequence(key) == -1


@pytest.mark.parametrize("checkpoint_id", ["", "nonsense", UNKNOWN])
def test_unknown_checkpoint_is_none(store: Store, checkpoint_id: str) -> None:
    HandDriver(store)
    assert store.find_checkpoint("t", checkpoint_id) is None
    assert store.list_checkpoints("t", before=checkpoint_id) == []


@pytest.mark.parametrize("run_id", ["", "nonsense", UNKNOWN])
def test_unknown_run_is_none(store: Store, run_id: str) -> None:
    assert store.find_run(run_id) is None
    assert store.list_journal(run_id) == []
    assert store.find_wait(run_id) is None


def test_checkpoint_of_another_thread_is_not_found(store: Store) -> None:
    HandDriver(store, "t")
    other = HandDriver(store, "other")
    assert store.find_checkpoint("t", other.draft.id) is None


def test_newest_of_the_root_ignores_a_newer_one_of_a_child(store: Store) -> None:
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    child.commit(changes={"mark": "child"})
    found = store.find_checkpoint("t")
    assert found is not None
    assert found.id == root.draft.id


def test_newest_of_a_child_ignores_the_root(store: Store) -> None:
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    root.commit(changes={"mark": "root"})
    found = store.find_checkpoint("t", None, CHILD)
    assert found is not None
    assert (found.id, found.namespace) == (child.draft.id, CHILD)


def test_checkpoint_is_found_in_its_own_namespace_only(store: Store) -> None:
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    assert store.find_checkpoint("t", child.draft.id) is None
    assert store.find_checkpoint("t", root.draft.id, CHILD) is None


def test_history_of_a_namespace_holds_only_its_own(store: Store) -> None:
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    root.commit()
    child.commit()
    found = store.list_checkpoints("t", namespace=CHILD)
    assert [record.namespace for record in found] == [CHILD, CHILD]
    assert store.last_sequence("t", CHILD) == 1


def test_history_is_newest_first_with_parents(store: Store) -> None:
    driver = HandDriver(store)
    ids = [driver.draft.id, *(driver.commit().id for _ in range(3))]
    found = store.list_checkpoints("t")
    assert [record.id for record in found] == ids[::-1]
    assert [record.parent_id for record in found] == [*ids[:3][::-1], None]


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (1, 1), (2, 2), (9, 4)])
def test_history_limit_keeps_the_newest(
    store: Store, limit: int, expected: int
) -> None:
    driver = HandDriver(store)
    for _ in range(3):
        driver.commit()
    found = store.list_checkpoints("t", limit=limit)
    assert [record.sequence for record in found] == [3, 2, 1, 0][:expected]


def test_history_before_a_checkpoint_starts_at_its_parent(store: Store) -> None:
    driver = HandDriver(store)
    second = [driver.commit() for _ in range(3)][1]
    found = store.list_checkpoints("t", before=second.id, limit=1)
    assert [record.sequence for record in found] == [1]


def test_history_of_a_second_run_goes_on_into_the_first(store: Store) -> None:
    """The input record of a new run names the head before as its parent."""
    first = HandDriver(store)
    last = first.commit(status=RunStatus.COMPLETED, of={"pending": ()})
    HandDriver(store)
    found = store.list_checkpoints("t")
    assert [record.sequence for record in found] == [2, 1, 0]
    assert (found[0].parent_id, found[0].lineage) == (last.id, 2)


def test_history_ends_where_a_parent_is_missing(store: Store) -> None:
    """A prune may take the parent of a base away: the walk ends, nothing fails."""
    driver = HandDriver(store)
    base = driver.next_draft(changes={"log": [], "mark": "base"})
    base = replace(base, lineage=base.sequence, parent_id=new_id())
    with store.atomic():
        store.commit(driver.fence, driver.boundary(base))
    driver.draft = base
    driver.commit(changes={"mark": "end"})
    found = store.list_checkpoints("t")
    assert [record.values["mark"] for record in found] == ["end", "base"]


def test_history_with_a_parent_in_another_namespace_ends_there(store: Store) -> None:
    """Section 7: namespace-foreign parents end the walk."""
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    base = child.next_draft(changes={"log": [], "mark": "base"})
    base = replace(base, lineage=base.sequence, parent_id=root.draft.id)
    with store.atomic():
        store.commit(child.fence, child.boundary(base))
    found = store.list_checkpoints("t", namespace=CHILD)
    assert [record.id for record in found] == [base.id]


def test_newest_run_of_a_thread_is_found(store: Store) -> None:
    HandDriver(store).commit(status=RunStatus.COMPLETED, of={"pending": ()})
    request = admission("t")
    with store.atomic():
        store.admit(request)
    found = store.find_thread_run("t")
    assert found is not None
    assert (found.id, found.status) == (request.run_id, RunStatus.PENDING)
