"""Answering, resuming and retrying runs: each a transaction, an entry and a wake-up."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from stateknot.errors import (
    AlreadyAnsweredError,
    AnswerError,
    ResumeError,
    RevisionMismatchError,
    ThreadBusyError,
)
from stateknot.models import Run, Wait
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import resume_run, retry_run, start_run, update_state
from stateknot.storage import DjangoCheckpointer
from tests.application.desk import (
    ASK,
    ASK_TWO,
    BREAK,
    LINE,
    build_line,
    queued,
    work,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def start(graph_id: str, **state: Any) -> Run:
    """Start a run on thread t and let it come to rest."""
    run = start_run(graph_id, state, thread_id="t")
    work()
    return get_run(run.id)


def values() -> Any:
    snapshot = get_state("t")
    assert snapshot is not None
    return snapshot.values


def questions() -> list[str]:
    """The ids of the open questions, the deciding one first."""
    snapshot = get_state("t")
    assert snapshot is not None
    return [str(question.id) for question in snapshot.pending_interrupts]


def kinds(run: Run) -> list[str]:
    return [event.kind for row in get_timeline(run.id) for event in row.events]


def test_answer_lets_the_run_go_on() -> None:
    run = start(ASK)
    assert run.status == "interrupted"
    assert resume_run("t", 5).status == "pending"
    assert queued() == [str(run.id)]
    work()
    assert get_run(run.id).status == "completed"
    assert (values().total, values().log) == (5, ["ask=5", "after"])


def test_answer_is_journalled_with_its_actor() -> None:
    run = start(ASK)
    resume_run("t", 5, actor=User(username="ada"))
    rows = [row for row in get_timeline(run.id) if row.actor]
    assert {row.actor for row in rows} == {"ada"}
    assert "wait.answered" in [event.kind for row in rows for event in row.events]
    assert Wait.objects.get().answered_by == "ada"


def test_answer_by_id_goes_to_that_question() -> None:
    start(ASK_TWO)
    left, right = questions()
    resume_run("t", 2, interrupt_id=right)
    work()
    assert questions() == [left]
    resume_run("t", 1, interrupt_id=left)
    work()
    assert values().log == ["left=1", "right=2", "end"]


def test_run_with_a_question_left_pauses_without_waking_itself() -> None:
    """An answer that was taken up is not taken up again at each drive."""
    run = start(ASK_TWO)
    _, right = questions()
    resume_run("t", 2, interrupt_id=right)
    assert work() == 1
    run = get_run(run.id)
    assert (run.status, queued()) == ("interrupted", [])
    snapshot = get_state("t")
    assert snapshot is not None
    assert "left" in snapshot.next_nodes


def test_second_answer_to_a_question_is_refused() -> None:
    start(ASK_TWO)
    left, _ = questions()
    resume_run("t", 1, interrupt_id=left)
    with pytest.raises((AlreadyAnsweredError, ResumeError)):
        resume_run("t", 9, interrupt_id=left)
    assert Wait.objects.get(id=left).answered_sequence is not None
    work()
    assert DjangoCheckpointer().find_wait(left).answer == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", ["five", None, {"n": 1}, [5]])
def test_answer_that_does_not_fit_is_refused(answer: Any) -> None:
    run = start(ASK)
    before = get_timeline(run.id)
    with pytest.raises(AnswerError):
        resume_run("t", answer)
    assert get_timeline(run.id) == before
    assert get_run(run.id).status == "interrupted"
    assert queued() == []


def test_answer_to_an_unknown_question_is_refused() -> None:
    run = start(ASK)
    with pytest.raises(ResumeError, match="no open question"):
        resume_run("t", 5, interrupt_id="nonsense")
    assert get_run(run.id).status == "interrupted"


def test_question_named_without_an_answer_is_refused() -> None:
    start(ASK)
    with pytest.raises(ResumeError, match="without an answer"):
        resume_run("t", interrupt_id=questions()[0])


def test_answer_in_a_transaction_that_rolls_back_was_never_given() -> None:
    run = start(ASK)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        raise ZeroDivisionError(resume_run("t", 5).id)
    assert get_run(run.id).status == "interrupted"
    assert Wait.objects.get().status == "open"
    assert queued() == []


@pytest.mark.parametrize("act", [resume_run, retry_run])
def test_unknown_thread_cannot_go_on(act: Any) -> None:
    with pytest.raises(ResumeError, match="'nobody'"):
        act("nobody")


@pytest.mark.parametrize("act", [resume_run, retry_run])
def test_completed_run_cannot_go_on(act: Any) -> None:
    start(LINE)
    with pytest.raises(ResumeError, match="no pending"):
        act("t")
    assert queued() == []


def test_retry_of_a_repaired_run_completes_the_same_run() -> None:
    run = start(BREAK, is_broken=True)
    assert (run.status, run.failed_node) == ("failed", "work")
    assert "the desk is broken" in run.error["message"]
    update_state("t", {"is_broken": False})
    again = retry_run("t", actor="ada")
    assert (again.id, again.error, again.failed_node) == (run.id, None, "")
    work()
    assert get_run(run.id).status == "completed"
    assert values().log == ["before", "worked"]
    assert [row.actor for row in get_timeline(run.id) if row.actor] == ["ada"]


def test_retry_without_a_repair_fails_again() -> None:
    run = start(BREAK, is_broken=True)
    retry_run("t")
    work()
    assert get_run(run.id).status == "failed"
    assert kinds(run).count("node.failed") == 2


def test_retry_while_a_newer_run_holds_the_thread_is_refused() -> None:
    """Decision 11: an older failed run is not reopened under a newer one."""
    start(BREAK, is_broken=True)
    snapshot = get_state("t")
    assert snapshot is not None
    failed_at = snapshot.config["checkpoint_id"]
    newer = start_run(BREAK, {}, thread_id="t")
    with pytest.raises(ThreadBusyError) as raised:
        resume_run("t", checkpoint_id=failed_at)
    assert raised.value.run_id == str(newer.id)


def test_resume_from_an_older_checkpoint_begins_a_branch() -> None:
    run = start(ASK)
    asked_at = get_state("t")
    assert asked_at is not None
    resume_run("t", 5)
    work()
    resume_run("t", 7, checkpoint_id=asked_at.config["checkpoint_id"])
    work()
    assert get_run(run.id).status == "completed"
    assert (values().total, values().log) == (7, ["ask=7", "after"])


def test_answer_to_a_branch_that_was_not_driven_yet_is_taken() -> None:
    """A branch exists from the resume on, before it has a checkpoint of its own."""
    start(ASK)
    asked_at = get_state("t")
    assert asked_at is not None
    resume_run("t", 5)
    work()
    resume_run("t", checkpoint_id=asked_at.config["checkpoint_id"])
    resume_run("t", 8)
    work()
    assert values().log == ["ask=8", "after"]


def test_answer_to_a_branch_survives_a_limit_before_its_first_boundary() -> None:
    start(ASK)
    asked_at = get_state("t")
    assert asked_at is not None
    resume_run("t", 5)
    work()
    checkpoint_id = asked_at.config["checkpoint_id"]
    run = resume_run("t", 8, checkpoint_id=checkpoint_id, step_limit=1)
    work()
    assert get_run(run.id).status == "failed"
    retry_run("t", step_limit=50)
    work()
    assert values().log == ["ask=8", "after"]


def test_run_of_other_code_is_not_driven(
    register_only: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is refused before any handler, both digests named, and left as it is."""
    run = start_run(LINE, {}, thread_id="t")
    register_only(build_line(version="2.0.0"))
    found = build_line(version="2.0.0").digest
    work()
    assert run.revision.digest in caplog.text
    assert found in caplog.text
    run = get_run(run.id)
    assert (run.status, run.epoch, run.error) == ("pending", 0, None)
    with pytest.raises(RevisionMismatchError) as raised:
        update_state("t", {"total": 1})
    assert (raised.value.expected, raised.value.found) == (run.revision.digest, found)


def test_run_of_older_code_is_driven_where_it_is_registered_too(
    register_only: Any,
) -> None:
    run = start_run(LINE, {}, thread_id="t")
    register_only(build_line(), build_line(version="2.0.0"))
    work()
    assert get_run(run.id).status == "completed"
