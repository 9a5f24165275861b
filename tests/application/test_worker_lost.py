"""Workers that vanish: what is recorded of them, and when a run is given up.

Decision 18. Leases expire in the database only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django_q.exceptions import TimeoutException

from stateknot import START, GraphBuilder, RetryableError, RetryPolicy
from stateknot.models import NodeAttempt, Run
from stateknot.runtime.budget import Quantum
from stateknot.runtime.worker import drive_run
from stateknot.selectors import get_run, get_timeline
from stateknot.services import resume_run, retry_run, start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK_TWO, LINE, Desk, work

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("desk"),
]


def take(run: Run) -> bool:
    """Let a worker take the run and vanish; False when it got nothing."""
    store = DjangoCheckpointer()
    with store.atomic():
        fence = store.claim(str(run.id), "lost")
    Run.objects.filter(holder="lost").update(
        lease_expires_at=Now() - timedelta(seconds=1)
    )
    return fence is not None


def attempts() -> list[tuple[str, int, str]]:
    rows = NodeAttempt.objects.order_by("id")
    return list(rows.values_list("activation_id", "number", "status"))


def test_takeover_records_the_attempt_that_was_lost() -> None:
    """Scenario 75: the same activation, two attempts, the second under a new epoch."""
    run = start_run(LINE, {}, thread_id="t")
    take(run)
    drive(str(run.id))
    assert attempts()[:2] == [("1:0:first", 1, "lost"), ("1:0:first", 2, "succeeded")]
    run = get_run(run.id)
    assert (run.status, run.epoch) == ("completed", 2)
    lost = NodeAttempt.objects.get(status="lost")
    assert lost.started_at <= lost.ended_at
    (row,) = [
        event
        for entry in get_timeline(run.id)
        for event in entry.events
        if event.kind == "lease.expired"
    ]
    assert row.data["lost"] == 1


def test_what_is_finished_or_asks_is_not_lost() -> None:
    """Only what may have been running has a lost attempt."""
    run = start_run(ASK_TWO, {}, thread_id="t")
    work()
    left, _ = [str(wait.id) for wait in DjangoCheckpointer().list_waits("t")]
    resume_run("t", 1, interrupt_id=left)
    take(run)
    take(run)
    assert [node for node, _, status in attempts() if status == "lost"] == ["1:0:left"]


def test_wq_02_third_loss_in_a_row_fails_the_run() -> None:
    """WQ-02: losses are counted by the one that claims, and the log says which."""
    run = start_run(LINE, {}, thread_id="t")
    assert [take(run) for _ in range(4)] == [True, True, True, False]
    run = get_run(run.id)
    assert (run.status, run.error_code) == ("failed", "node.worker_lost")
    assert (run.failed_node, run.holder) == ("first", "")
    assert "3 workers in a row were lost" in run.error["message"]
    assert [status for _, _, status in attempts()] == ["lost"] * 3


def test_limit_of_losses_is_a_setting(settings: Any) -> None:
    settings.STATEKNOT = {
        **getattr(settings, "STATEKNOT", {}),
        "worker_lost_limit": 1,
    }
    run = start_run(LINE, {}, thread_id="t")
    assert [take(run), take(run)] == [True, False]
    assert get_run(run.id).error_code == "node.worker_lost"


def test_retry_after_losses_counts_anew() -> None:
    run = start_run(LINE, {}, thread_id="t")
    for _ in range(4):
        take(run)
    retry_run("t")
    assert [take(run), take(run)] == [True, True]
    drive(str(run.id))
    assert get_run(run.id).status == "completed"


def test_boundary_between_losses_begins_the_row_anew() -> None:
    run = start_run(LINE, {}, thread_id="t")
    take(run)
    take(run)
    drive_run(DjangoCheckpointer(), str(run.id), Quantum(supersteps=1))
    assert [take(run) for _ in range(3)] == [True] * 3


def end_process_with(
    error: SystemExit, register_only: Any, thread: str
) -> tuple[Run, list[int]]:
    """Start a run whose one node raises `error`; the run, and what counts its calls."""
    calls: list[int] = []

    def end(_desk: Desk) -> dict[str, Any]:
        calls.append(1)
        raise error

    builder = GraphBuilder("desk.ending", state=Desk).add_node("end", end)
    register_only(builder.add_sequence(START, "end").compile())
    return start_run("desk.ending", {}, thread_id=thread), calls


def test_wq_03_timeout_of_the_queue_fails_the_run(register_only: Any) -> None:
    """WQ-03: recorded by the one that is ended, and not run again by itself."""
    run, calls = end_process_with(TimeoutException("2 s"), register_only, "t")
    with pytest.raises(TimeoutException):
        drive(str(run.id))
    drive(str(run.id))
    run = get_run(run.id)
    assert (run.status, run.error_code, run.holder) == ("failed", "runtime.timeout", "")
    assert "2 s" in run.error["message"]
    assert len(calls) == 1


def test_wq_02_node_that_ends_its_process_is_given_up(register_only: Any) -> None:
    """WQ-02: the next claim counts the loss, which the ended process could not."""
    run, calls = end_process_with(SystemExit(3), register_only, "t")
    for _ in range(3):
        with pytest.raises(SystemExit):
            drive(str(run.id))
        Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    drive(str(run.id))
    run = get_run(run.id)
    assert (run.status, run.error_code) == ("failed", "node.worker_lost")
    assert len(calls) == 3


def test_lost_attempt_uses_up_no_retry(register_only: Any) -> None:
    """A policy of two tries still has two."""
    calls: list[int] = []

    def fail_once(_desk: Desk) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            raise RetryableError("busy")
        return {"total": 1}

    builder = GraphBuilder("desk.flaky", state=Desk)
    retry = RetryPolicy(max_attempts=2, initial_interval=0.001)
    builder.add_node("work", fail_once, retry=retry).add_edge(START, "work")
    register_only(builder.compile())
    run = start_run("desk.flaky", {}, thread_id="t")
    take(run)
    drive(str(run.id))
    assert attempts() == [
        ("1:0:work", 1, "lost"),
        ("1:0:work", 2, "failed"),
        ("1:0:work", 3, "succeeded"),
    ]
