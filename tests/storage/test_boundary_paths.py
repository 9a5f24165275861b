"""The ways in which a boundary is written store the same rows under the same fence.

Inside a transaction a boundary is a few statements; alone, on PostgreSQL, it is one.
Both stand here on real commits; what a boundary means is the contract suite's.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, connection

from stateknot.errors import LeaseError
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.models import Checkpoint, JournalEvent, NodeAttempt, Run
from stateknot.storage import DjangoCheckpointer
from tests.storage.hand_driver import HandDriver, attempt, everything, question

if TYPE_CHECKING:
    from stateknot.kernel.records import AttemptRecord
    from stateknot.kernel.writes import CheckpointDraft

pytestmark = pytest.mark.django_db(transaction=True)
CHOSEN = {
    Checkpoint: ["sequence", "lineage", "step", "source", "changes", "appends"],
    NodeAttempt: ["activation_id", "number", "status", "error", "usage", "sequence"],
    JournalEvent: ["number", "first_event", "actor", "events", "digest"],
    Run: ["sequence", "steps", "next_journal", "event_count", "active_seconds"],
}
ERROR = {"code": "é", "n": [1, None, 1.5, True]}


class Alone(HandDriver):
    """Commits boundaries outside any transaction, as a drive does."""

    def commit(self, **fields: Any) -> CheckpointDraft:
        store, self.store = self.store, Unblocked(self.store)
        try:
            return super().commit(**fields)
        finally:
            self.store = store


class Unblocked:
    """A store whose blocks are not transactions."""

    def __init__(self, store: Any) -> None:
        self.commit = store.commit
        self.atomic = nullcontext


def rows_of(driver: HandDriver) -> dict[str, Any]:
    """What was written, without ids and times."""
    of_run = {Run: "id", Checkpoint: "run_id", NodeAttempt: "run_id"}
    found = {}
    for model, columns in CHOSEN.items():
        mine = model.objects.filter(**{of_run.get(model, "run_id"): driver.run.id})
        rows = mine.order_by("id").values_list(*columns)
        found[model.__name__] = [[as_bytes(value) for value in row] for row in rows]
    return found


def as_bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def failed_attempt() -> AttemptRecord:
    status = AttemptStatus.FAILED
    return attempt("1:0:a", 1, status=status, error=ERROR, usage={"tokens": 3})


def drive(kind: type[HandDriver], thread_id: str) -> HandDriver:
    """Commit some boundaries of every hot shape."""
    driver = kind(DjangoCheckpointer(), thread_id)
    driver.commit(changes={"mark": "one"})
    driver.commit(appends={"log": [{"k": "é"}]}, attempts=(failed_attempt(),))
    driver.commit(attempts=(attempt("2:0:a", 2), attempt("2:1:b", 2)), events=())
    driver.commit(active_seconds=1.5)
    driver.commit(attempts=tuple(attempt(f"5:{n}:a", 5) for n in range(70)))
    return driver


def test_boundary_alone_stores_what_one_in_a_transaction_does() -> None:
    in_block, alone = drive(HandDriver, "block"), drive(Alone, "alone")
    assert rows_of(alone) == rows_of(in_block)
    assert rows_of(alone)["NodeAttempt"][0][3] == ERROR


@pytest.mark.parametrize("kind", [HandDriver, Alone])
def test_boundary_that_somebody_listens_to_stores_the_same(
    kind: type[HandDriver],
) -> None:
    """On PostgreSQL it then goes through Django's cursor, as wrappers expect."""
    heard: list[str] = []

    def listen(execute: Any, sql: str, *rest: Any) -> Any:
        heard.append(sql)
        return execute(sql, *rest)

    unheard = drive(kind, "unheard")
    with connection.execute_wrapper(listen):
        listened = drive(kind, "listened")
    assert rows_of(listened) == rows_of(unheard)
    assert [sql for sql in heard if Checkpoint._meta.db_table in sql]


@pytest.mark.only_on("postgres")
def test_boundary_alone_refuses_what_a_column_does_not_take() -> None:
    """Neither is a value that is too long cut, nor one with a NUL ended there."""
    driver = Alone(DjangoCheckpointer())
    driver.commit()
    longest = NodeAttempt._meta.get_field("activation_id").max_length
    before = everything(driver.store, driver.run.id)
    for name in ("x" * (longest + 1), "1:0:\x00"):
        with pytest.raises(DataError):
            driver.commit(attempts=(attempt(name, 2),))
        assert everything(driver.store, driver.run.id) == before


def test_boundary_alone_reads_back_as_it_was_folded() -> None:
    driver = drive(Alone, "t")
    found = driver.store.find_checkpoint("t")
    assert found is not None
    assert found.values == {"log": [{"k": "é"}], "mark": "one"}
    assert found.created_at is not None


def test_boundary_alone_under_a_stale_fence_writes_nothing() -> None:
    driver = Alone(DjangoCheckpointer())
    driver.commit()
    old = driver.fence
    with driver.store.atomic():
        driver.store.release(old)
    driver.claim()
    driver.fence = old
    before = everything(driver.store, driver.run.id)
    with pytest.raises(LeaseError):
        driver.commit(changes={"mark": "stale"}, attempts=(attempt("1:0:a", 2),))
    assert everything(driver.store, driver.run.id) == before


def test_boundary_alone_behind_an_act_in_between_takes_the_next_number() -> None:
    """An answer journalled meanwhile moved the number that the driver remembers."""
    driver = Alone(DjangoCheckpointer())
    asked = question("1:0:a", 1)
    driver.commit(waits=(asked,))
    driver.commit()
    other = DjangoCheckpointer()
    with other.atomic():
        other.answer(asked.id, "yes", actor="ada")
    driver.commit(changes={"mark": "behind"})
    rows = driver.store.list_journal(driver.run.id)
    assert [row.number for row in rows] == list(range(5))
    assert [row.actor for row in rows] == ["", "", "", "ada", ""]
    found = driver.store.find_checkpoint("t")
    assert found is not None
    assert (found.sequence, found.values["mark"]) == (3, "behind")


def test_boundary_alone_on_a_head_that_a_drive_elsewhere_wrote() -> None:
    """What one process remembers of a run is checked against where it stands."""
    driver = Alone(DjangoCheckpointer())
    driver.commit(changes={"mark": "here"})
    here, driver.store = driver.store, DjangoCheckpointer()
    driver.commit(appends={"log": ["elsewhere"]})
    driver.store = here
    driver.commit(appends={"log": ["here again"]})
    found = driver.store.find_checkpoint("t")
    assert found is not None
    assert found.values == {"log": ["elsewhere", "here again"], "mark": "here"}
