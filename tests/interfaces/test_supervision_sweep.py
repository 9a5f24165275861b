"""`stateknot_sweep`: what it wakes, what it prints."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models.functions import Now
from django_q.models import OrmQ
from pydantic import BaseModel

from stateknot import START, GraphBuilder
from stateknot.models import Run, Schedule
from stateknot.registry import register
from stateknot.services import start_run

pytestmark = pytest.mark.django_db


class Greeting(BaseModel):
    text: str = ""


def greet(greeting: Greeting) -> dict[str, str]:
    return {"text": "hello"}


@pytest.fixture
def missed() -> Run:
    """Return a run whose wake-up was lost."""
    builder = GraphBuilder("sweep.greeting", state=Greeting, version="1.0.0")
    builder.add_node("greet", greet).add_edge(START, "greet")
    register(builder.compile())
    run = start_run("sweep.greeting", Greeting())
    OrmQ.objects.all().delete()
    Run.objects.filter(pk=run.pk).update(woken_at=None)
    return run


def sweep(*options: str) -> str:
    """Run the command and return what it prints."""
    output = StringIO()
    call_command("stateknot_sweep", *options, stdout=output)
    return output.getvalue()


def test_missed_run_is_woken(missed: Run) -> None:
    assert sweep() == f"woke {missed.pk}\n1 woken\n"
    assert OrmQ.objects.count() == 1


def test_run_is_woken_by_one_of_two_sweeps(missed: Run) -> None:
    sweep()
    assert sweep() == "0 woken\n"
    assert OrmQ.objects.count() == 1


def test_json_names_the_runs(missed: Run) -> None:
    found: dict[str, Any] = json.loads(sweep("--json"))
    assert found == {
        "woken": 1,
        "run_ids": [str(missed.pk)],
        "started": [],
        "failed": [],
    }


def test_due_schedule_starts_its_run(missed: Run) -> None:
    sweep()
    Schedule.objects.create(
        name="hourly", graph_id="sweep.greeting", cron="0 * * * *", next_tick_at=Now()
    )
    printed = sweep()
    run = Schedule.objects.get().last_run
    assert printed == f"started {run.pk}\n0 woken\n"
    assert run.thread.key.startswith("hourly/")
