"""Lineages and names as both stores keep them, damaged rows included.

The checks of section 7.1 that the port has, by their scenario; those of reading, runs
and waits stand in the files beside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import RunError
from stateknot.kernel.vocabulary import RunStatus
from tests.storage.hand_driver import HandDriver, admission

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

CHILD = ("child",)


def second_lineage(store: Store, **changes: Any) -> HandDriver:
    """A run on thread "t" behind one that ended with mark "first"."""
    first = HandDriver(store)
    first.commit(changes={"mark": "first"}, status=RunStatus.COMPLETED)
    return HandDriver(store, values={"mark": "second"}, **changes)


def base_of(driver: HandDriver, parent_id: str) -> Any:
    """A record that begins a lineage and names `parent_id`."""
    draft = driver.next_draft(changes={"log": [], "mark": "base"})
    return replace(draft, lineage=draft.sequence, parent_id=parent_id)


def test_history_of_a_record_that_is_its_own_parent_ends(store: Store) -> None:
    """Scenario 156: one entry, and the walk is over."""
    driver = HandDriver(store)
    base = base_of(driver, "")
    base = replace(base, parent_id=base.id)
    with store.atomic():
        store.commit(driver.fence, driver.boundary(base))
    assert [record.id for record in store.list_checkpoints("t")] == [base.id]


def test_history_of_records_that_name_each_other_ends(store: Store) -> None:
    """Scenario 156's kind: a longer circle."""
    driver = HandDriver(store)
    first = base_of(driver, "")
    driver.draft = first
    second = base_of(driver, first.id)
    first = replace(first, parent_id=second.id)
    with store.atomic():
        store.commit(driver.fence, driver.boundary(first))
        store.commit(driver.fence, driver.boundary(second))
    found = [record.id for record in store.list_checkpoints("t")]
    assert found == [second.id, first.id]


def test_history_limit_reaches_over_lineages(store: Store) -> None:
    """Scenario 151: the newest, wherever their lineage began."""
    driver = second_lineage(store)
    driver.commit(changes={"mark": "third"})
    marks = [r.values["mark"] for r in store.list_checkpoints("t", limit=3)]
    assert marks == ["third", "second", "first"]


def test_each_lineage_reads_its_own_state(store: Store) -> None:
    """Scenario 151: a base holds every field, whatever stood before it."""
    driver = second_lineage(store)
    driver.commit(appends={"log": ["x"]})
    states = [dict(record.values) for record in store.list_checkpoints("t")]
    assert states[:2] == [
        {"log": ["x"], "mark": "second"},
        {"log": [], "mark": "second"},
    ]


def test_namespaces_are_numbered_for_themselves(store: Store) -> None:
    """Scenarios 151 and 155: interleaved, each keeps its own order and head."""
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    for driver in (root, child, root, child, child):
        driver.commit()
    assert (store.last_sequence("t"), store.last_sequence("t", CHILD)) == (2, 3)
    for namespace, driver in (((), root), (CHILD, child)):
        history = store.list_checkpoints("t", namespace=namespace)
        assert history[0].id == driver.draft.id
        numbers = [record.sequence for record in history]
        assert numbers == list(range(numbers[0], -1, -1))


@pytest.mark.parametrize("namespace", [(), CHILD])
def test_record_is_read_in_its_own_namespace(
    namespace: tuple[str, ...], store: Store
) -> None:
    """Scenario 158: by its id too, and neither reads as the other."""
    root = HandDriver(store)
    child = HandDriver(store, namespace=CHILD, parent_run_id=root.run.id)
    mine, other = (child, root) if namespace else (root, child)
    found = store.find_checkpoint("t", mine.draft.id, namespace)
    assert found is not None
    assert found.namespace == namespace
    assert store.find_checkpoint("t", other.draft.id, namespace) is None


def test_thread_ids_that_differ_in_case_are_two(store: Store) -> None:
    """Scenario 159: on every database."""
    for thread_id in ("thread", "Thread", "THREAD"):
        HandDriver(store, thread_id, values={"mark": thread_id})
    for thread_id in ("thread", "Thread", "THREAD"):
        found = store.find_checkpoint(thread_id)
        assert found is not None
        assert found.values["mark"] == thread_id
    assert store.find_checkpoint("tHREAD") is None


@pytest.mark.parametrize("thread_id", ["a/b", "ä ö", "..", "a%b_", "x" * 255, "'; --"])
def test_thread_id_is_any_text(thread_id: str, store: Store) -> None:
    """Scenario 159: nothing in it means anything to a store."""
    driver = HandDriver(store, thread_id)
    found = store.find_checkpoint(thread_id)
    assert found is not None
    assert (found.id, found.thread_id) == (driver.draft.id, thread_id)


def test_empty_thread_id_is_refused(store: Store) -> None:
    """Scenario 159: unlike the reference; and it reads as unknown."""
    with pytest.raises(RunError, match="thread id"), store.atomic():
        store.admit(admission(""))
    assert store.find_checkpoint("") is None
    assert store.list_checkpoints("") == []
