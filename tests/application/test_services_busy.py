"""Second starts on a thread: refused, behind the run that holds it, or in its place."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot.errors import RunError
from stateknot.models import Run, Wait
from stateknot.registry import get_graph
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import cancel_run, resume_run, start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK, BREAK, LINE, build_line, queued, work
from tests.blocking import PATIENCE, errors, together, wait_until_one_is_blocked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("desk"),
]


def enqueue(graph_id: str = ASK, state: Any = None, **options: Any) -> Run:
    return start_run(graph_id, state or {}, thread_id="t", on_busy="enqueue", **options)


def events(run: Run) -> list[Any]:
    return [event for row in get_timeline(run.id) for event in row.events]


def pause() -> Run:
    """A run that waits for an answer on thread t."""
    run = start_run(ASK, {}, thread_id="t")
    work()
    return run


def test_queued_start_begins_with_the_end_of_the_run_before() -> None:
    """Decision 11: it is woken by the transaction that frees its thread."""
    pause()
    second, third = enqueue(state={"total": 5}), enqueue(state={"total": 7})
    assert (second.status, second.is_queued, queued()) == ("pending", True, [])
    resume_run("t", 1)
    work()
    assert get_run(second.id).status == "interrupted"
    assert get_run(third.id).is_queued
    resume_run("t", 1)
    work()
    assert get_state("t").values.total == 7  # type: ignore[union-attr]
    resume_run("t", 1)
    work()
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert get_state("t").values.total == 8  # type: ignore[union-attr]


def test_queued_start_on_a_free_thread_is_woken_at_once() -> None:
    run = enqueue()
    assert (run.is_queued, queued()) == (False, [str(run.id)])


def test_failed_run_makes_room_for_the_next() -> None:
    run = start_run(BREAK, {"is_broken": True}, thread_id="t")
    second = enqueue(BREAK)
    work()
    assert get_run(run.id).status == "failed"
    assert get_run(second.id).status == "completed"


def test_run_of_the_callers_own_process_makes_room_too() -> None:
    graph = get_graph(ASK).with_checkpointer(DjangoCheckpointer())
    graph.run_with_thread("t", {})
    second = enqueue()
    from stateknot import Command

    graph.resume("t", Command(resume=1))
    assert queued() == [str(second.id)]


def test_lost_wake_up_of_the_next_is_made_up_for_by_the_sweep() -> None:
    run = pause()
    second = enqueue()
    cancel_run(run.id, reason="enough")
    assert queued() == [str(second.id)]
    OrmQ.objects.all().delete()
    Run.objects.update(woken_at=Now() - timedelta(hours=1))
    assert sweep().run_ids == (str(second.id),)
    work()
    assert get_run(second.id).status == "interrupted"


def test_dead_worker_makes_room_once_it_was_found_out() -> None:
    """It was to be cancelled, so the sweep ends its run and the next one begins."""
    run = start_run(ASK, {}, thread_id="t")
    store = DjangoCheckpointer()
    with store.atomic():
        store.claim(str(run.id), "dead")
    second = enqueue()
    cancel_run(run.id, reason="enough")
    assert get_run(second.id).is_queued
    Run.objects.filter(id=run.id).update(lease_expires_at=Now() - timedelta(seconds=1))
    sweep()
    work()
    assert get_run(second.id).status == "interrupted"


def test_stranded_run_is_begun_by_the_sweep() -> None:
    """Somebody took the row away that it waited for."""
    run = pause()
    second = enqueue()
    Run.objects.filter(id=run.id).update(status="completed")
    sweep()
    assert not get_run(second.id).is_queued
    assert queued() == [str(second.id)]


def test_cancelled_queued_start_does_not_stall_the_rest() -> None:
    """Under enqueue, cancel the queued one: the others run after."""
    run = pause()
    second, third = enqueue(), enqueue()
    assert cancel_run(second.id, reason="changed my mind").status == "cancelled"
    cancel_run(run.id, reason="enough")
    work()
    assert get_run(second.id).status == "cancelled"
    assert get_run(third.id).status == "interrupted"
    drive(str(second.id))
    assert get_run(second.id).status == "cancelled"


def test_start_waits_for_an_end_that_is_not_committed() -> None:
    """Either the end sees what is queued, or the start finds the thread free."""
    run = pause()
    ending = threading.Event()

    def end() -> None:
        with transaction.atomic():
            cancel_run(run.id, reason="enough")
            ending.set()
            wait_until_one_is_blocked()

    def second() -> Run:
        assert ending.wait(PATIENCE)
        return enqueue()

    _, started = results = together(end, second)
    assert errors(results) == []
    assert (started.is_queued, queued()) == (False, [str(started.id)])


def test_end_waits_for_a_start_that_is_not_committed() -> None:
    run = pause()
    starting = threading.Event()

    def second() -> Run:
        with transaction.atomic():
            started = enqueue()
            starting.set()
            wait_until_one_is_blocked()
        return started

    def end() -> None:
        assert starting.wait(PATIENCE)
        cancel_run(run.id, reason="enough")

    started, _ = results = together(second, end)
    assert errors(results) == []
    assert not get_run(started.id).is_queued
    assert queued() == [str(started.id)]


def test_starts_at_once_all_run_one_after_the_other() -> None:
    results = together(*[lambda: enqueue(LINE)] * 4)
    assert errors(results) == []
    assert Run.objects.filter(queued_input=None).count() == 1
    work()
    assert Run.objects.filter(status="completed").count() == 4


def test_queued_starts_with_one_key_give_one_run() -> None:
    pause()
    results = together(*[lambda: enqueue(idempotency_key="k")] * 3)
    assert errors(results) == []
    assert len({run.id for run in results}) == 1
    assert Run.objects.count() == 2


def test_superseding_start_closes_the_question_and_says_so() -> None:
    """Decision 11: nothing open is dropped silently."""
    run = pause()
    wait = Wait.objects.get()
    second = start_run(ASK, {}, thread_id="t", on_busy="supersede", actor="ada")
    assert (second.is_queued, queued()) == (False, [str(second.id)])
    run = get_run(run.id)
    assert run.status == "cancelled"
    assert run.cancel_reason == f"superseded by run {second.id}"
    end = events(run)[-1]
    assert (end.kind, end.data["waits"]) == ("run.cancelled", [str(wait.id)])
    assert get_timeline(run.id)[-1].actor == "ada"
    told = [event for event in events(second) if event.kind == "run.supersedes"]
    assert told[0].data == {"run_id": str(run.id)}
    wait.refresh_from_db()
    assert wait.status == "closed"


def test_superseding_start_waits_for_the_end_of_a_driven_run() -> None:
    run = start_run(LINE, {}, thread_id="t")
    store = DjangoCheckpointer()
    with store.atomic():
        fence = store.claim(str(run.id), "elsewhere")
    assert fence is not None
    OrmQ.objects.all().delete()
    second = start_run(LINE, {}, thread_id="t", on_busy="supersede")
    assert second.is_queued
    assert get_run(run.id).cancel_requested_at is not None
    with store.atomic():
        store.release(fence)
    assert queued() == [str(second.id)]
    work()
    assert [get_run(r.id).status for r in (run, second)] == ["cancelled", "completed"]


def test_superseding_start_on_a_free_thread_is_a_start() -> None:
    start_run(LINE, {}, thread_id="t")
    work()
    run = start_run(LINE, {}, thread_id="t", on_busy="supersede")
    assert "run.supersedes" not in [event.kind for event in events(run)]
    work()
    assert Run.objects.filter(status="completed").count() == 2


def test_superseding_start_that_is_refused_cancels_nothing() -> None:
    run = pause()
    with pytest.raises(RunError, match="belongs to graph"):
        start_run(LINE, {}, thread_id="t", on_busy="supersede")
    assert get_run(run.id).status == "interrupted"


def test_unknown_way_to_start_is_refused() -> None:
    with pytest.raises(RunError, match="'enqueue'"):
        start_run(LINE, {}, on_busy="wait")


def test_repeated_start_after_a_deploy_is_the_same_start(register_only: Any) -> None:
    """The client's retry reaches a process with newer code."""
    first = start_run(LINE, {}, thread_id="t", idempotency_key="k")
    register_only(build_line("2.0.0"))
    again = start_run(LINE, {}, thread_id="t", idempotency_key="k")
    assert again.id == first.id
