"""TM-10: a project with USE_TZ off and a zone far from UTC.

Times are moments all the same: nothing is due five hours early or late, and no page
compares an aware time with a naive one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.db.models import F
from django.urls import reverse
from pydantic import BaseModel

from stateknot import (
    START,
    CronSchedule,
    GraphBuilder,
    Interrupt,
    NodeContext,
    Timer,
    registry,
)
from stateknot.models import Checkpoint, Run, Schedule, Wait
from stateknot.registry import register
from stateknot.services import resume_run, retry_run, start_run
from stateknot.services.schedules import start_due, store_schedules
from stateknot.services.sweeping import SweepPass
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.interfaces.samples import API

if TYPE_CHECKING:
    from django.test import Client

GRAPH = "sample.moments"
HOUR = timedelta(hours=1)


class Nap(BaseModel):
    answer: int = 0


def ask(_nap: Nap, ctx: NodeContext) -> Any:
    if ctx.has_resume:
        return {"answer": ctx.resume}
    return Interrupt("How many?", schema=int, expires_in=HOUR, default=3)


builder = GraphBuilder(GRAPH, state=Nap)
builder.add_node("span", lambda _nap: Timer(HOUR))
builder.add_node("moment", lambda _nap: Timer(datetime.now(UTC) + HOUR))
builder.add_node("ask", ask)
builder.add_sequence(START, "span", "moment", "ask")
graph = builder.compile()


@pytest.fixture(autouse=True)
def _far_from_utc(db: None, settings: Any) -> None:
    """A zone whose clock never changes, five hours behind UTC."""
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/Panama"
    register(graph)


def drive_on(run: Run) -> Run:
    drive(str(run.id))
    run.refresh_from_db()
    return run


def pass_by(span: timedelta) -> None:
    """Make the rows older."""
    Wait.objects.exclude(due_at=None).update(due_at=F("due_at") - span)
    Run.objects.exclude(wake_at=None).update(wake_at=F("wake_at") - span)
    Run.objects.update(woken_at=F("woken_at") - span)


def about(moment: Any, expected: datetime) -> bool:
    """Whether a stored moment is the one expected, give or take a minute."""
    return abs(moment - expected) < timedelta(minutes=1)


@pytest.fixture
def asked() -> Run:
    """A run that waited for both kinds of timer and asks its question."""
    run = drive_on(start_run(GRAPH, {}, thread_id="t"))
    for _ in ("span", "moment"):
        assert run.status == "waiting"
        assert about(run.wake_at, datetime.now(UTC) + HOUR)
        assert SweepPass()().swept.woken == 0
        pass_by(HOUR + timedelta(minutes=1))
        assert SweepPass()().swept.woken == 1
        drive_on(run)
    assert run.status == "interrupted"
    return run


def test_tm_10_timers_are_due_in_their_time(asked: Run) -> None:
    now = datetime.now(UTC)
    assert about(asked.created_at, now)
    assert about(Wait.objects.get(status="open").due_at, now + HOUR)
    assert about(Checkpoint.objects.latest("sequence").created_at, now)
    assert about(DjangoCheckpointer().now(), now)


def test_tm_10_expired_question_is_answered_by_the_sweep(asked: Run) -> None:
    SweepPass()()
    assert drive_on(asked).status == "interrupted"
    pass_by(HOUR + timedelta(minutes=1))
    SweepPass()()
    assert drive_on(asked).status == "completed"
    assert about(asked.ended_at, datetime.now(UTC))


def test_tm_10_lease_of_a_lost_worker_expires_in_its_time() -> None:
    run = start_run(GRAPH, {}, thread_id="t")
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), "lost") is not None
    run.refresh_from_db()
    assert about(run.lease_expires_at, datetime.now(UTC) + timedelta(seconds=30))
    pass_by(HOUR)
    assert SweepPass()().swept.woken == 0
    Run.objects.update(lease_expires_at=datetime.now(UTC) - HOUR)
    assert SweepPass()().swept.woken == 1


def test_tm_10_waiting_run_is_run_now() -> None:
    run = drive_on(start_run(GRAPH, {}, thread_id="t"))
    retry_run("t")
    assert about(drive_on(run).wake_at, datetime.now(UTC) + HOUR)


def test_tm_10_schedule_keeps_to_its_own_zone(monkeypatch: Any) -> None:
    monkeypatch.setattr(registry, "_schedules", {})
    daily = CronSchedule("sample.daily", "0 6 * * *", "Europe/Berlin")
    register(graph, schedules=[daily])
    store_schedules()
    tick = Schedule.objects.get().next_tick_at
    assert tick is not None
    assert start_due().run_ids == ()
    (run_id,) = start_due(tick).run_ids
    key = Run.objects.get(id=run_id).thread.key
    assert key == f"sample.daily/{tick:%Y-%m-%dT%H:%M:%SZ}"
    assert tick.astimezone(ZoneInfo("Europe/Berlin")).hour == 6


def test_tm_10_caller_drives_in_process() -> None:
    done = graph.with_checkpointer(DjangoCheckpointer()).run_with_thread("here", {})
    assert done.status == "waiting"


def test_tm_10_pages_are_shown(asked: Run, admin_client: Client) -> None:
    for name in ("run", "thread", "wait", "graphrevision", "schedule"):
        page = reverse(f"admin:stateknot_{name}_changelist")
        assert admin_client.get(page).status_code == 200
    for name, pk in (("run", asked.pk), ("thread", asked.thread_id)):
        page = reverse(f"admin:stateknot_{name}_change", args=[pk])
        assert admin_client.get(page).status_code == 200


def test_tm_10_api_tells_moments(asked: Run, admin_client: Client) -> None:
    for path in (f"runs/{asked.id}", "threads/t", "threads/t/checkpoints"):
        assert admin_client.get(f"{API}/{path}").status_code == 200
    told = admin_client.get(f"{API}/runs/{asked.id}").json()
    assert about(datetime.fromisoformat(told["created_at"]), datetime.now(UTC))
    resume_run("t", 5)
    assert drive_on(asked).status == "completed"
