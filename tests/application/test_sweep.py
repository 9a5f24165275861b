"""The sweep finds what nobody was woken for, and wakes it once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot import START, GraphBuilder, RetryableError, RetryPolicy
from stateknot.models import Run
from stateknot.runtime.holders import holder_name
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_timeline
from stateknot.services import resume_run, start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK, ASK_TWO, LINE, Desk, build_ask, queued, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def lose_wake_ups() -> None:
    """Drop what is queued, a minute ago."""
    OrmQ.objects.all().delete()
    Run.objects.update(woken_at=Now() - timedelta(seconds=60))


def claim(run: Run) -> None:
    """Let a worker take the run and say nothing more."""
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), holder_name("lost")) is not None


def test_admitted_run_without_a_worker_is_woken_once() -> None:
    """EX-02: two sweeps, one wake-up."""
    run = start_run(LINE, {}, thread_id="t")
    lose_wake_ups()
    assert sweep().run_ids == (str(run.id),)
    assert sweep().run_ids == ()
    assert queued() == [str(run.id)]
    work()
    assert get_run(run.id).status == "completed"


def test_run_that_was_just_woken_is_left_alone() -> None:
    start_run(LINE, {}, thread_id="t")
    assert sweep().run_ids == ()


def test_wq_09_run_under_a_live_lease_is_left_alone() -> None:
    """WQ-09: a worker's first sweep adopts nothing that another one drives."""
    run = start_run(LINE, {}, thread_id="t")
    lose_wake_ups()
    claim(run)
    assert sweep().run_ids == ()


def test_run_of_a_lost_worker_is_woken() -> None:
    run = start_run(LINE, {}, thread_id="t")
    lose_wake_ups()
    claim(run)
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert sweep().run_ids == (str(run.id),)
    work()
    run = get_run(run.id)
    assert (run.status, run.epoch) == ("completed", 2)
    kinds = [event.kind for row in get_timeline(run.id) for event in row.events]
    assert kinds.count("lease.expired") == 1


@pytest.mark.parametrize("graph_id", [LINE, ASK])
def test_run_at_rest_is_left_alone(graph_id: str) -> None:
    start_run(graph_id, {}, thread_id="t")
    work()
    lose_wake_ups()
    assert sweep().run_ids == ()


def answer_while_driven(run: Run, left: str, right: str) -> None:
    """Answer the second question while the drive of the first goes on."""
    resume_run("t", 1, interrupt_id=left)
    claim(run)
    resume_run("t", 2, interrupt_id=right)
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))


def test_answer_that_came_during_a_drive_is_taken_up() -> None:
    """IH-13: the run does not stay paused with nothing left to answer."""
    run = start_run(ASK_TWO, {}, thread_id="t")
    work()
    left, right = [str(w.id) for w in DjangoCheckpointer().list_waits("t")]
    answer_while_driven(run, left, right)
    work()
    assert get_run(run.id).status == "completed"


def test_paused_run_with_an_answer_is_woken_once() -> None:
    """The worker died between the pause and its look at the answers."""
    run = start_run(ASK, {}, thread_id="t")
    work()
    store = DjangoCheckpointer()
    (wait,) = store.list_waits("t")
    with store.atomic():
        store.answer(wait.id, 5)
    assert sweep().run_ids == (str(run.id),)
    assert sweep().run_ids == ()
    assert work() == 1
    assert get_run(run.id).status == "completed"


def test_paused_run_whose_other_question_is_open_is_left_alone() -> None:
    start_run(ASK_TWO, {}, thread_id="t")
    work()
    _, right = [str(w.id) for w in DjangoCheckpointer().list_waits("t")]
    resume_run("t", 2, interrupt_id=right)
    work()
    lose_wake_ups()
    assert sweep().run_ids == ()


@pytest.fixture
def waiting(register_only: Any) -> Run:
    """A run that put its second try off for a minute."""
    tries: list[int] = []

    def fail_once(_desk: Desk) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise RetryableError("busy")
        return {"total": len(tries)}

    builder = GraphBuilder("desk.later", state=Desk)
    retry = RetryPolicy(initial_interval=60, maximum_interval=60)
    builder.add_node("work", fail_once, retry=retry).add_edge(START, "work")
    register_only(builder.compile())
    run = start_run("desk.later", {}, thread_id="t")
    work()
    return get_run(run.id)


def test_retry_that_was_put_off_is_not_woken_before_its_time(waiting: Run) -> None:
    assert waiting.status == "waiting"
    lose_wake_ups()
    assert sweep().run_ids == ()
    drive(str(waiting.id))
    assert get_run(waiting.id).status == "waiting"


def test_retry_that_was_put_off_is_woken_when_it_is_due(waiting: Run) -> None:
    lose_wake_ups()
    Run.objects.update(wake_at=Now() - timedelta(seconds=1))
    assert sweep().run_ids == (str(waiting.id),)
    work()
    assert get_run(waiting.id).status == "completed"


def test_sweep_wakes_no_more_than_its_batch(settings: Any) -> None:
    settings.STATEKNOT = {**getattr(settings, "STATEKNOT", {}), "sweep_batch": 2}
    for number in range(3):
        start_run(LINE, {}, thread_id=str(number), priority=number)
    lose_wake_ups()
    assert sweep().woken == 2
    assert sweep().woken == 1


def test_urgent_run_is_woken_first(settings: Any) -> None:
    settings.STATEKNOT = {**getattr(settings, "STATEKNOT", {}), "sweep_batch": 1}
    start_run(LINE, {}, thread_id="usual")
    urgent = start_run(LINE, {}, thread_id="urgent", priority=5)
    lose_wake_ups()
    assert sweep().run_ids == (str(urgent.id),)


def test_run_of_other_code_does_not_keep_the_sweep_from_others(
    register_only: Any,
) -> None:
    start_run(LINE, {}, thread_id="unknown")
    other = start_run(ASK, {}, thread_id="known")
    register_only(build_ask())
    lose_wake_ups()
    assert sweep().woken == 2
    work()
    assert get_run(other.id).status == "interrupted"


def test_sweep_fills_the_queue_no_further_than_its_batch(settings: Any) -> None:
    """Workers that are behind are not buried in wake-ups of runs that have one."""
    settings.STATEKNOT = {**getattr(settings, "STATEKNOT", {}), "sweep_batch": 4}
    for number in range(9):
        start_run(LINE, {}, thread_id=str(number))
    lose_wake_ups()
    for _ in range(3):
        sweep()
        Run.objects.update(woken_at=Now() - timedelta(seconds=60))
    assert len(queued()) == 4 + 2
    OrmQ.objects.all().delete()
    assert sweep().woken == 4
