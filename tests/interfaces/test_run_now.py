"""A run that waits an hour for its next try is run now, from every interface."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F
from django_q.models import OrmQ
from pydantic import BaseModel

from stateknot import START, GraphBuilder, RetryableError, RetryPolicy
from stateknot.models import JournalEvent, Run
from stateknot.registry import register
from stateknot.runtime.recovery import sweep
from stateknot.services import start_run
from stateknot.tasks import drive
from tests.interfaces.admin_samples import client_of, url_of
from tests.interfaces.samples import client_with, send

pytestmark = pytest.mark.django_db
GRAPH = "sample.put_off"
calls: list[int] = []


class Call(BaseModel):
    is_answered: bool = False


def ring(_call: Call) -> dict[str, bool]:
    """Answer at the second try, an hour behind the first one."""
    calls.append(1)
    if len(calls) == 1:
        raise RetryableError("engaged")
    return {"is_answered": True}


builder = GraphBuilder(GRAPH, state=Call)
retry = RetryPolicy(initial_interval=3600, maximum_interval=3600, jitter=0)
builder.add_node("ring", ring, retry=retry).add_edge(START, "ring")
register(builder.compile())


@pytest.fixture
def waiting() -> Run:
    """Return a run that put its second try off for an hour."""
    calls.clear()
    run = start_run(GRAPH, {}, thread_id="t")
    drive(str(run.id))
    run.refresh_from_db()
    assert run.status == "waiting"
    return run


def retry_in_admin(run: Run) -> None:
    operator = client_of("ada", "view_run", "retry_run")
    page = operator.get(url_of(run))
    assert "Run now" in page.content.decode()
    shown = {"shown": page.context["token"]}
    assert operator.post(url_of(run, "retry"), shown).status_code == 302


def retry_over_http(run: Run) -> None:
    assert (
        send(client_with("retry_run"), "POST", "threads/t/retry", {}).status_code == 202
    )


def retry_by_command(run: Run) -> None:
    call_command("stateknot_retry", "t", stdout=io.StringIO())


@pytest.mark.parametrize("act", [retry_in_admin, retry_over_http, retry_by_command])
def test_tm_09_run_that_waits_is_run_now(act: Any, waiting: Run) -> None:
    """TM-09: one more try, and the old time does nothing when it comes."""
    act(waiting)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.wake_at) == ("pending", None)
    assert JournalEvent.objects.filter(run=waiting).exclude(actor="").exists()
    drive(str(waiting.id))
    OrmQ.objects.all().delete()
    Run.objects.update(woken_at=F("woken_at") - timedelta(hours=2))
    assert sweep().run_ids == ()
    drive(str(waiting.id))
    waiting.refresh_from_db()
    assert (waiting.status, len(calls)) == ("completed", 2)


def test_tm_09_wake_up_before_its_time_does_nothing(waiting: Run) -> None:
    """What runs it is the operator's act, not another look."""
    drive(str(waiting.id))
    waiting.refresh_from_db()
    assert (waiting.status, len(calls)) == ("waiting", 1)
