"""A run at the superstep limit: failed with what it used, or closing until known.

Scenarios are those of spec/composition.md, section 5.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db.models.functions import Now

from stateknot import END, START, GraphBuilder, NodeContext
from stateknot.errors import RecursionLimitError
from stateknot.models import NodeAttempt, Run
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_timeline
from stateknot.services import retry_run, start_run
from stateknot.storage import DjangoCheckpointer
from tests.application.desk import Desk, work

pytestmark = pytest.mark.django_db(transaction=True)
LOOP = "desk.loop"
CODE = "runtime.graph.superstep_limit_reached"
PROVIDER = f"{__name__}.provided"
answers: list[Any] = []


def provided(run_id: str) -> Any:
    """Say what the test wants said; the last answer again and again."""
    answer = answers[0] if len(answers) == 1 else answers.pop(0)
    if isinstance(answer, Exception):
        raise answer
    return answer


@pytest.fixture(autouse=True)
def loop(register_only: Any) -> Any:
    """A loop that reports usage and never ends by itself."""

    def spend(_desk: Desk, ctx: NodeContext) -> dict[str, Any]:
        ctx.report_usage(tokens=5)
        return {"log": ["spend"]}

    builder = GraphBuilder(LOOP, state=Desk).with_recursion_limit(2)
    builder.add_node("spend", spend).add_edge(START, "spend")
    builder.add_conditional_edges(
        "spend",
        lambda desk: "again" if len(desk.log) < 4 else END,
        {"again": "spend"},
    )
    graph = builder.compile()
    register_only(graph)
    return graph


@pytest.fixture
def provider(settings: Any) -> list[Any]:
    """Let the usage be what the list says: amounts, None, or an error."""
    settings.STATEKNOT = {
        **getattr(settings, "STATEKNOT", {}),
        "usage_provider": PROVIDER,
    }
    answers[:] = [None]
    return answers


def stopped() -> Run:
    """A run that a worker brought to its limit."""
    run = start_run(LOOP, {}, thread_id="t")
    work()
    return get_run(run.id)


def ask_again() -> Run:
    """Let the sweep find the run, and a worker take it up."""
    Run.objects.update(woken_at=Now() - timedelta(seconds=60))
    sweep()
    work()
    return get_run(Run.objects.get().id)


def kinds(run: Run) -> list[str]:
    return [event.kind for row in get_timeline(run.id) for event in row.events]


def test_limit_is_recorded_with_the_usage_of_its_attempts() -> None:
    """Scenario 77, decision 16."""
    run = stopped()
    assert (run.status, run.error_code) == ("failed", CODE)
    assert run.error["usage"] == {"tokens": 10}
    assert NodeAttempt.objects.count() == 2


def test_unknown_usage_keeps_the_run_closing(provider: list[Any]) -> None:
    """Scenario 78: nothing is recorded, nobody holds it, its thread stays taken."""
    run = stopped()
    assert (run.status, run.error_code, run.holder) == ("closing", "", "")
    assert (run.error, run.lease_expires_at, run.ended_at) == (None, None, None)
    assert "run.closing" in kinds(run)


def test_provider_that_raises_keeps_the_run_closing(provider: list[Any]) -> None:
    """Scenario 78: evidence unavailable."""
    provider[:] = [ConnectionError("no answer")]
    assert stopped().status == "closing"
    assert ask_again().status == "closing"


def test_sweep_asks_again_until_the_usage_is_known(provider: list[Any]) -> None:
    """Scenario 79: the failure is the first one, with the usage as given."""
    stopped()
    provider[:] = [None, {"tokens": 7}]
    assert ask_again().status == "closing"
    run = ask_again()
    assert (run.status, run.error_code) == ("failed", CODE)
    assert run.error["usage"] == {"tokens": 7}
    assert "limit of 2 steps" in run.error["message"]
    assert NodeAttempt.objects.count() == 2


def test_settled_run_is_not_asked_about_again(provider: list[Any]) -> None:
    """Scenario 79: the hand-over repeated, by somebody who cannot tell."""
    run = stopped()
    provider[:] = [{"tokens": 7}]
    before = (ask_again().error, kinds(run))
    provider[:] = [AssertionError("asked")]
    store = DjangoCheckpointer()
    with store.atomic():
        assert not store.settle(str(run.id), {"tokens": 0})
    assert (ask_again().error, kinds(run)) == before


def test_closing_run_is_left_alone_until_the_grace_is_over(
    provider: list[Any],
) -> None:
    stopped()
    assert sweep().run_ids == ()


def test_closing_run_is_settled_without_its_code(
    provider: list[Any], register_only: Any
) -> None:
    stopped()
    register_only()
    provider[:] = [{"tokens": 7}]
    assert ask_again().status == "failed"


def test_closing_run_goes_on_with_a_raised_limit(provider: list[Any]) -> None:
    stopped()
    retry_run("t", step_limit=9)
    work()
    run = get_run(Run.objects.get().id)
    assert (run.status, run.steps) == ("completed", 4)


def test_lost_attempt_of_a_reporting_node_makes_the_usage_incomplete() -> None:
    """Decision 16: what the lost one used is not known, and not invented."""
    run = start_run(LOOP, {}, thread_id="t")
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), "lost") is not None
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    work()
    assert get_run(run.id).status == "closing"
    assert store.measure_usage(str(run.id)).amounts == {"tokens": 10}


def test_caller_gets_its_error_while_the_run_is_closing(
    provider: list[Any], loop: Any
) -> None:
    graph = loop.with_checkpointer(DjangoCheckpointer())
    with pytest.raises(RecursionLimitError):
        graph.run_with_thread("t", {})
    assert Run.objects.get().status == "closing"


@pytest.mark.parametrize("path", ["nowhere.to_be_found", f"{__name__}.CODE"])
def test_usage_provider_that_cannot_be_called_is_named(
    settings: Any, path: str
) -> None:
    settings.STATEKNOT = {"usage_provider": path}
    (message,) = run_checks(tags=["stateknot"])
    assert message.id == "stateknot.E004"
    assert path in message.msg
