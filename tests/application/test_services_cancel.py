"""Cancelling from outside: runs of workers that are alive, dead, or not there yet."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from stateknot import START, GraphBuilder, Timer, shared_subgraph
from stateknot.errors import (
    AlreadyAnsweredError,
    LeaseError,
    NotFoundError,
    ResumeError,
    RunError,
)
from stateknot.models import Run, Wait
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import cancel_run, resume_run, retry_run, start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK, BREAK, LINE, Desk, ask, note, queued, work
from tests.blocking import PATIENCE, errors, together, wait_until_one_is_blocked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("desk"),
]


def kinds(run: Run) -> list[str]:
    return [event.kind for row in get_timeline(run.id) for event in row.events]


def take(run: Run) -> Any:
    """Let a worker take the run and say nothing more."""
    store = DjangoCheckpointer()
    with store.atomic():
        fence = store.claim(str(run.id), "elsewhere")
    assert fence is not None
    return fence


def expire(run: Run) -> None:
    """Let the lease of the run's worker have run out."""
    rows = Run.objects.filter(id=run.id)
    rows.update(lease_expires_at=Now() - timedelta(seconds=1))


def test_pending_run_ends_and_its_wake_up_does_nothing() -> None:
    run = start_run(LINE, {}, thread_id="t")
    cancelled = cancel_run(run.id, reason="a mistake", actor="ada")
    assert (cancelled.status, cancelled.cancel_reason) == ("cancelled", "a mistake")
    assert work() == 1
    assert get_run(run.id).status == "cancelled"
    (row,) = get_timeline(run.id)[-1:]
    assert (row.actor, row.events[0].data) == ("ada", {"reason": "a mistake"})
    start_run(LINE, {}, thread_id="t")


def test_paused_run_ends_and_its_question_is_closed() -> None:
    run = start_run(ASK, {}, thread_id="t")
    work()
    cancel_run(run.id, reason="")
    assert Wait.objects.get().status == "closed"
    with pytest.raises((ResumeError, AlreadyAnsweredError)):
        resume_run("t", 1)
    with pytest.raises(ResumeError, match="cancelled"):
        retry_run("t")
    assert get_state("t").values == Desk()  # type: ignore[union-attr]


def test_run_that_waits_for_a_time_ends(register_only: Any) -> None:
    builder = GraphBuilder("desk.timer", state=Desk)
    builder.add_node("wait", lambda _desk: Timer(timedelta(days=1)))
    builder.add_node("after", note("after")).add_sequence(START, "wait", "after")
    register_only(builder.compile())
    run = start_run("desk.timer", {}, thread_id="t")
    work()
    assert get_run(run.id).status == "waiting"
    run = cancel_run(run.id, reason="no time")
    assert (run.status, run.wake_at) == ("cancelled", None)
    Wait.objects.update(due_at=Now() - timedelta(seconds=1))
    assert sweep().run_ids == ()


def test_driven_run_is_asked_once_and_ends_with_its_worker() -> None:
    run = start_run(LINE, {}, thread_id="t")
    fence = take(run)
    asked = cancel_run(run.id, reason="first")
    assert (asked.status, asked.cancel_reason) == ("running", "first")
    assert cancel_run(run.id, reason="second").cancel_reason == "first"
    store = DjangoCheckpointer()
    with store.atomic():
        assert not store.release(fence)
    run = get_run(run.id)
    assert run.status == "cancelled"
    assert kinds(run) == ["run.admitted", "run.cancel_requested", "run.cancelled"]


@pytest.mark.parametrize("finder", ["sweep", "worker", "canceller"])
def test_run_of_a_dead_worker_ends_once_its_lease_ran_out(finder: str) -> None:
    """Decision 17: the bound is the lease and one sweep."""
    run = start_run(LINE, {}, thread_id="t")
    take(run)
    cancel_run(run.id, reason="enough", actor="ada")
    sweep()
    assert get_run(run.id).status == "running"
    expire(run)
    match finder:
        case "sweep":
            assert sweep().failed == ()
        case "worker":
            drive(str(run.id))
        case "canceller":
            cancel_run(run.id, reason="again")
    run = get_run(run.id)
    assert (run.status, run.cancel_reason, run.steps) == ("cancelled", "enough", 0)
    assert kinds(run).count("run.cancel_requested") == 1


def test_late_write_of_a_worker_taken_for_dead_is_refused() -> None:
    """WQ-19: it goes on after the run was ended for it."""
    run = start_run(LINE, {}, thread_id="t")
    fence = take(run)
    cancel_run(run.id, reason="enough")
    expire(run)
    sweep()
    store = DjangoCheckpointer()
    for write in (store.renew, store.release):
        with pytest.raises(LeaseError), store.atomic():
            write(fence)
    assert get_run(run.id).status == "cancelled"


def test_cancelled_run_is_not_taken_up_by_another_worker() -> None:
    run = start_run(LINE, {}, thread_id="t")
    take(run)
    cancel_run(run.id, reason="enough")
    expire(run)
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), "another") is None
    assert Run.objects.runnable().count() == 0


def test_wq_20_children_of_a_paused_parent_end_with_it(register_only: Any) -> None:
    """WQ-20: their questions are closed, their wake-ups find nothing."""
    inner = GraphBuilder("desk.inner", state=Desk).add_node("ask", ask)
    child = inner.add_sequence(START, "ask").compile()
    builder = GraphBuilder("desk.outer", state=Desk)
    builder.add_node("sub", shared_subgraph(child)).add_node("end", note("end"))
    register_only(builder.add_sequence(START, "sub", "end").compile())
    run = start_run("desk.outer", {}, thread_id="t")
    work()
    part = Run.objects.get(parent_run=run.id)
    assert part.status == "interrupted"
    with pytest.raises(RunError, match=str(run.id)):
        cancel_run(part.id, reason="alone")
    cancel_run(run.id, reason="enough")
    part.refresh_from_db()
    assert (part.status, part.cancel_reason) == ("cancelled", "enough")
    assert set(Wait.objects.values_list("status", flat=True)) == {"closed"}
    for one in (part, run):
        drive(str(one.id))
    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}


def test_failed_run_has_nothing_to_cancel() -> None:
    run = start_run(BREAK, {"is_broken": True}, thread_id="t")
    work()
    with pytest.raises(RunError, match="failed"):
        cancel_run(run.id, reason="")


def test_unknown_run_is_not_found() -> None:
    for wrong in ("no-id", "0195f2c4-0000-7000-8000-000000000000"):
        with pytest.raises(NotFoundError):
            cancel_run(wrong, reason="")


@pytest.mark.parametrize("reason", ["x" * 501, "nul \0"])
def test_reason_that_cannot_be_stored_is_refused(reason: str) -> None:
    run = start_run(LINE, {}, thread_id="t")
    with pytest.raises(RunError):
        cancel_run(run.id, reason=reason)
    assert get_run(run.id).status == "pending"


def test_cancel_takes_part_in_the_callers_transaction() -> None:
    run = start_run(LINE, {}, thread_id="t")
    with transaction.atomic():
        cancel_run(run.id, reason="enough")
        transaction.set_rollback(True)
    work()
    assert get_run(run.id).status == "completed"


def test_two_cancels_at_once_are_one() -> None:
    run = start_run(LINE, {}, thread_id="t")
    results = together(*[lambda: cancel_run(run.id, reason="enough")] * 2)
    assert errors(results) == []
    assert kinds(run).count("run.cancelled") == 1


def test_claim_waits_for_a_cancel_and_gets_nothing() -> None:
    """A worker that comes in between neither drives the run nor is lost in it."""
    run = start_run(LINE, {}, thread_id="t")
    cancelling = threading.Event()

    def cancel() -> None:
        with transaction.atomic():
            cancel_run(run.id, reason="enough")
            cancelling.set()
            wait_until_one_is_blocked()

    def worker() -> None:
        assert cancelling.wait(PATIENCE)
        drive(str(run.id))

    assert errors(together(cancel, worker)) == []
    run = get_run(run.id)
    assert (run.status, run.epoch) == ("cancelled", 0)
    assert queued() == [str(run.id)]
