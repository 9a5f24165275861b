"""Questions, answers and pending results, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot.errors import AlreadyAnsweredError, NotFoundError
from stateknot.kernel.vocabulary import UNSET, RunStatus, WaitStatus
from stateknot.kernel.writes import Reopening
from tests.storage.hand_driver import (
    HandDriver,
    admission,
    attempt,
    everything,
    pending,
    question,
)

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

ASKING = pending("a", "b")
UNKNOWN = "019a0000-0000-7000-8000-000000000000"


def ask(store: Store, **changes: Any) -> tuple[HandDriver, list[str]]:
    """A paused run with one question of each of two activations; gives their ids."""
    driver = HandDriver(store)
    asked = [question(a.id, 1, position=0, **changes) for a in ASKING]
    driver.commit(
        status=RunStatus.INTERRUPTED, waits=tuple(asked), of={"pending": ASKING}
    )
    return driver, [wait.id for wait in asked]


def test_open_questions_are_listed_as_they_were_asked(store: Store) -> None:
    driver, ids = ask(store, key="k", default={"d": 1}, schema={"type": "object"})
    found = store.list_waits("t")
    assert [wait.id for wait in found] == ids
    first = found[0]
    assert (first.payload, first.key, first.default) == (
        {"ask": "1:0:a"},
        "k",
        {"d": 1},
    )
    assert (first.thread_id, first.run_id) == ("t", driver.run.id)
    assert first.schema == {"type": "object"}
    assert first.asked_at is not None
    assert first == store.find_wait(ids[0])


def test_question_without_a_default_differs_from_one_of_null(store: Store) -> None:
    _, (first, _) = ask(store)
    found = store.find_wait(first)
    assert found is not None
    assert found.default is UNSET
    assert found.answer is UNSET


@pytest.mark.parametrize("value", [None, "yes", {"approved": True}, [1, 2]])
def test_answer_is_kept_with_who_gave_it(store: Store, value: Any) -> None:
    driver, (first, second) = ask(store)
    with store.atomic():
        answered = store.answer(first, value, actor="ada")
    assert answered == store.find_wait(first)
    assert (answered.status, answered.answer) == (WaitStatus.ANSWERED, value)
    assert (answered.answered_by, answered.answered_sequence) == ("ada", 1)
    assert [wait.id for wait in store.list_waits("t")] == [first, second]
    assert store.list_journal(driver.run.id)[-1].actor == "ada"


def test_second_answer_is_refused(store: Store) -> None:
    driver, (first, _) = ask(store)
    with store.atomic():
        store.answer(first, "yes", actor="ada")
    before = everything(store, driver.run.id)
    with pytest.raises(AlreadyAnsweredError), store.atomic():
        store.answer(first, "no", actor="bob")
    assert everything(store, driver.run.id) == before


def test_answer_to_a_closed_question_is_refused(store: Store) -> None:
    driver, (first, _) = ask(store)
    driver.write(closed_waits=(first,))
    with pytest.raises(AlreadyAnsweredError), store.atomic():
        store.answer(first, "late")


@pytest.mark.parametrize("wait_id", [UNKNOWN, "nonsense"])
def test_answer_to_an_unknown_question_is_refused(store: Store, wait_id: str) -> None:
    with pytest.raises(NotFoundError), store.atomic():
        store.answer(wait_id, "yes")


def test_answer_may_come_while_the_run_is_driven(store: Store) -> None:
    """IH-13: a second form that is sent while the first drives is not lost."""
    driver, (first, second) = ask(store)
    with store.atomic():
        store.reopen(Reopening(run_id=driver.run.id))
        store.answer(first, 1)
    driver.claim()
    with store.atomic():
        store.answer(second, 2)
    driver.commit(status=RunStatus.INTERRUPTED, closed_waits=(first,))
    (left,) = store.list_waits("t")
    assert (left.id, left.answer, left.answered_sequence) == (second, 2, 1)


def test_closed_questions_are_listed_at_their_checkpoint_only(store: Store) -> None:
    driver, ids = ask(store)
    asked_at = store.find_checkpoint("t")
    driver.claim_again()
    driver.commit(closed_waits=tuple(ids))
    assert store.list_waits("t") == []
    assert asked_at is not None
    assert [wait.id for wait in store.list_waits_at(asked_at)] == ids


def test_questions_asked_later_did_not_stand_at_a_checkpoint(store: Store) -> None:
    ask(store)
    (_, first_record) = store.list_checkpoints("t")
    assert store.list_waits_at(first_record) == []


def test_questions_of_another_namespace_are_not_listed(store: Store) -> None:
    ask(store)
    assert store.list_waits("t", ("child",)) == []


def test_open_question_of_a_run_left_behind_is_closed(store: Store) -> None:
    """Decision 11: a new run on the thread closes it, and its journal says so."""
    driver, (first, _) = ask(store)
    driver.claim_again()
    with store.atomic():
        store.finish(driver.fence, RunStatus.FAILED, error=None, events=[])
        run = store.admit(admission("t"))
    found = store.find_wait(first)
    assert found is not None
    assert found.status is WaitStatus.CLOSED
    kinds = [e.kind for row in store.list_journal(run.id) for e in row.events]
    assert "waits.superseded" in kinds
    assert store.list_waits("t") == []


def test_question_of_a_branch_left_behind_is_closed(store: Store) -> None:
    driver, ids = ask(store)
    base = driver.record().head_id
    driver.write(changes={"mark": "edited"})
    carried = question(ASKING[0].id, 1, lineage=3)
    with store.atomic():
        store.reopen(
            Reopening(run_id=driver.run.id, head_id=base, lineage=3, waits=(carried,))
        )
    assert [wait.id for wait in store.list_waits("t")] == [carried.id]
    found = store.find_wait(ids[0])
    assert found is not None
    assert found.status is WaitStatus.CLOSED


def test_pending_result_is_listed_until_it_is_folded(store: Store) -> None:
    """D18: a finished result behind the deciding branch is kept for its fold."""
    driver = HandDriver(store)
    kept = attempt("1:1:b", 1, result={"update": {"mark": {"typed": "b"}}})
    driver.commit(
        status=RunStatus.FAILED,
        attempts=(attempt("1:0:a", 1), kept),
        of={"pending": ASKING},
    )
    (found,) = store.list_results(driver.record())
    assert (found.id, found.result) == (kept.id, kept.result)
    driver.claim_again()
    driver.commit(folded_attempts=(kept.id,))
    assert store.list_results(driver.record()) == []


def test_folded_result_is_still_known_at_its_checkpoint(store: Store) -> None:
    driver = HandDriver(store)
    kept = attempt("1:1:b", 1, result={})
    driver.commit(attempts=(kept,), of={"pending": ASKING})
    at = store.find_checkpoint("t")
    driver.commit(folded_attempts=(kept.id,))
    assert at is not None
    assert [item.id for item in store.list_results_at(at)] == [kept.id]
    (_, before) = store.list_checkpoints("t", limit=2)
    (first,) = store.list_checkpoints("t", before=before.id)
    assert store.list_results_at(first) == []


def test_result_of_a_branch_left_behind_is_not_used(store: Store) -> None:
    driver = HandDriver(store)
    driver.commit(
        status=RunStatus.FAILED,
        attempts=(attempt("1:1:b", 1, result={}),),
        of={"pending": ASKING},
    )
    head = driver.record().head_id
    with store.atomic():
        run = store.reopen(Reopening(run_id=driver.run.id, head_id=head, lineage=2))
    assert store.list_results(run) == []
