"""Two people, or two workers, at once: one wins, the other is told.

Real threads with connections of their own, on real commits.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot import START, GraphBuilder
from stateknot.errors import (
    AlreadyAnsweredError,
    ResumeError,
    StaleCheckpointError,
    ThreadBusyError,
)
from stateknot.models import JournalEvent, Run, Wait
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import resume_run, retry_run, start_run, update_state
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK, BREAK, LINE, Desk, queued, work
from tests.blocking import PATIENCE, errors, together, wait_until_one_is_blocked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("desk"),
]


def pause() -> Run:
    """A run that waits for an answer on thread t."""
    run = start_run(ASK, {}, thread_id="t")
    work()
    return run


def values() -> Any:
    snapshot = get_state("t")
    assert snapshot is not None
    return snapshot.values


def test_two_answers_at_once_count_once() -> None:
    """IH-01: the node goes on with one of them, and the other is refused."""
    run = pause()
    results = together(lambda: resume_run("t", 1), lambda: resume_run("t", 2))
    assert errors(results) == [AlreadyAnsweredError]
    work()
    answer = 1 if isinstance(results[1], Exception) else 2
    assert values().log == [f"ask={answer}", "after"]
    kinds = [event.kind for row in get_timeline(run.id) for event in row.events]
    assert kinds.count("wait.answered") == 1


def test_two_answers_by_id_at_once_count_once() -> None:
    pause()
    wait_id = str(Wait.objects.get().id)
    results = together(
        *(lambda n=n: resume_run("t", n, interrupt_id=wait_id) for n in (1, 2))
    )
    assert errors(results) == [AlreadyAnsweredError]
    work()
    assert len(values().log) == 2


def test_second_answer_before_a_worker_looks_is_refused() -> None:
    """IH-01: a double click, one after the other."""
    pause()
    resume_run("t", 1)
    with pytest.raises(AlreadyAnsweredError):
        resume_run("t", 2)
    assert len(queued()) == 1
    work()
    assert values().total == 1


def test_two_starts_on_one_thread_give_one_run() -> None:
    results = together(*[lambda: start_run(ASK, {}, thread_id="t")] * 2)
    assert errors(results) == [ThreadBusyError]
    assert Run.objects.count() == 1
    assert len(queued()) == 1


def test_two_starts_on_a_used_thread_give_one_run() -> None:
    start_run(LINE, {}, thread_id="t")
    work()
    results = together(*[lambda: start_run(LINE, {}, thread_id="t")] * 3)
    assert errors(results) == [ThreadBusyError] * 2
    work()
    assert Run.objects.filter(status="completed").count() == 2


def test_starts_with_one_key_give_one_run() -> None:
    results = together(*[lambda: start_run(LINE, {}, idempotency_key="k")] * 3)
    assert errors(results) == []
    assert len({run.id for run in results}) == 1
    assert len(queued()) == 1


def test_start_with_a_key_waits_for_one_that_is_not_committed() -> None:
    """The second finds the first only when its own insert meets the constraint."""
    started = threading.Event()

    def slow() -> Run:
        with transaction.atomic():
            run = start_run(LINE, {}, idempotency_key="k")
            started.set()
            wait_until_one_is_blocked()
        return run

    def second() -> Run:
        assert started.wait(PATIENCE)
        return start_run(LINE, {}, idempotency_key="k")

    first, again = together(slow, second)
    assert first.id == again.id


def test_two_edits_on_one_checkpoint_count_once() -> None:
    start_run(BREAK, {"is_broken": True}, thread_id="t")
    work()
    snapshot = get_state("t")
    assert snapshot is not None
    expected = snapshot.config["checkpoint_id"]

    def edit() -> Any:
        return update_state("t", {"total": 1}, expected_checkpoint_id=expected)

    assert errors(together(edit, edit)) == [StaleCheckpointError]
    assert values().total == 1


def test_edits_without_an_expectation_lose_nothing() -> None:
    """Two editors who did not say what they saw: both count, or one is refused."""
    start_run(BREAK, {"is_broken": True}, thread_id="t")
    work()
    results = together(*[lambda: update_state("t", {"total": 1})] * 3)
    refused = errors(results)
    assert set(refused) <= {StaleCheckpointError}
    assert values().total == 3 - len(refused)


def test_two_drives_of_one_run_execute_it_once(register_only: Any) -> None:
    """PF-15: a doubled wake-up starts no handler twice."""
    calls: list[str] = []
    inside, looked = threading.Event(), threading.Event()

    def once(_desk: Desk) -> dict[str, Any]:
        calls.append("called")
        inside.set()
        assert looked.wait(PATIENCE)
        return {"total": 1}

    builder = GraphBuilder("desk.once", state=Desk)
    builder.add_node("once", once).add_edge(START, "once")
    register_only(builder.compile())
    run_id = str(start_run("desk.once", {}, thread_id="t").id)

    def second() -> None:
        assert inside.wait(PATIENCE)
        drive(run_id)
        looked.set()

    assert errors(together(lambda: drive(run_id), second)) == []
    run = get_run(run_id)
    assert (calls, run.epoch, run.status) == (["called"], 1, "completed")


def test_answer_and_drive_at_once_leave_no_gap_in_the_journal() -> None:
    run = pause()
    resume_run("t", 1)
    together(lambda: drive(str(run.id)), lambda: resume_run("t", 2), lambda: sweep())
    work()
    rows = JournalEvent.objects.filter(run=run).order_by("number")
    assert [row.number for row in rows] == list(range(len(rows)))
    assert values().total == 1


def test_wq_09_two_sweeps_at_once_wake_each_run_once() -> None:
    """WQ-09: the one that comes second acts on what the first one left."""
    runs = [start_run(LINE, {}, thread_id=f"t{n}") for n in range(20)]
    OrmQ.objects.all().delete()
    Run.objects.update(woken_at=Now() - timedelta(seconds=60))
    woken = [run_id for report in together(sweep, sweep) for run_id in report.run_ids]
    assert sorted(woken) == sorted(queued()) == sorted(str(run.id) for run in runs)


def test_wq_09_two_sweeps_at_once_take_an_answer_up_once() -> None:
    """WQ-09: both saw the answer, one reopened the run."""
    run = pause()
    store = DjangoCheckpointer()
    with store.atomic():
        store.answer(str(Wait.objects.get().id), 5)
    woken = [report.run_ids for report in together(sweep, sweep)]
    assert sorted(woken) == [(), (str(run.id),)]
    assert queued() == [str(run.id)]


def test_two_retries_at_once_run_it_once() -> None:
    run = start_run(BREAK, {"is_broken": True}, thread_id="t")
    work()
    update_state("t", {"is_broken": False})
    results = together(*[lambda: retry_run("t")] * 2)
    assert set(errors(results)) <= {ThreadBusyError, ResumeError}
    work()
    assert (get_run(run.id).status, values().log) == ("completed", ["before", "worked"])
