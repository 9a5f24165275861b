"""The journal, on both stores: dense numbers, in order, with who did it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import RunStatus
from stateknot.kernel.writes import Reopening
from tests.storage.hand_driver import HandDriver, pending, question

if TYPE_CHECKING:
    from stateknot.kernel.store import Store


def live(store: Store) -> HandDriver:
    """A run with a boundary, an answer, an edit, a second drive and its end."""
    driver = HandDriver(store)
    driver.commit(events=(Event(kind="one", step=1), Event(kind="two", node="a")))
    asked = question("1:0:a", 2)
    driver.commit(
        status=RunStatus.INTERRUPTED, waits=(asked,), of={"pending": pending("a")}
    )
    with store.atomic():
        store.answer(asked.id, True, actor="ada")
    driver.write(changes={"mark": "x"}, actor="bob")
    reopened = Event(kind="run.reopened", data={"why": "test"})
    with store.atomic():
        store.reopen(Reopening(run_id=driver.run.id, actor="cleo", events=(reopened,)))
    driver.claim()
    with store.atomic():
        store.record_attempts(driver.fence, [], [Event(kind="between")])
    driver.commit(events=())
    driver.commit(status=RunStatus.COMPLETED, of={"pending": ()})
    return driver


def test_numbers_are_dense_from_zero(store: Store) -> None:
    rows = store.list_journal(live(store).run.id)
    assert [row.number for row in rows] == list(range(len(rows)))


def test_event_numbers_count_every_event_once(store: Store) -> None:
    rows = store.list_journal(live(store).run.id)
    counted = 0
    for row in rows:
        assert row.first_event == counted
        counted += len(row.events)


def test_rows_tell_what_happened_in_order(store: Store) -> None:
    rows = store.list_journal(live(store).run.id)
    assert [event.kind for row in rows for event in row.events] == [
        "run.admitted",
        "one",
        "two",
        "step.completed",
        "wait.answered",
        "state.edited",
        "run.reopened",
        "between",
        "step.completed",
    ]
    assert [row.actor for row in rows] == ["", "", "", "ada", "bob", "cleo", "", ""]


def test_events_read_back_as_they_were_told(store: Store) -> None:
    rows = store.list_journal(live(store).run.id)
    assert rows[1].events == (Event(kind="one", step=1), Event(kind="two", node="a"))
    assert rows[5].events[0].data == {"why": "test"}


def test_row_of_a_boundary_names_its_checkpoint(store: Store) -> None:
    driver = live(store)
    rows = store.list_journal(driver.run.id)
    assert rows[-1].checkpoint_id == driver.draft.id
    assert rows[-2].checkpoint_id is None


def test_rows_behind_a_number_are_listed(store: Store) -> None:
    run_id = live(store).run.id
    everything = store.list_journal(run_id)
    assert store.list_journal(run_id, after=3) == everything[4:]
    assert store.list_journal(run_id, after=99) == []


def test_boundary_without_events_takes_no_row(store: Store) -> None:
    driver = HandDriver(store)
    before = len(store.list_journal(driver.run.id))
    driver.commit(events=())
    driver.commit(events=())
    assert len(store.list_journal(driver.run.id)) == before
