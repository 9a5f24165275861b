"""What an operator does about a node of which nobody can tell whether it acted."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from stateknot import START, GraphBuilder
from stateknot.registry import register
from stateknot.services import start_run, update_state
from tests.interfaces.admin_samples import client_of, url_of
from tests.interfaces.samples import Loop, client_with, drive, send
from tests.runtime.points import Crash

if TYPE_CHECKING:
    from stateknot.models import Run

pytestmark = pytest.mark.django_db
CODE = "node.outcome_unknown"


class Payment:
    """Goes down with its process while `is_down`."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_down = True

    def __call__(self, _state: Loop) -> dict[str, Any]:
        self.calls += 1
        if self.is_down:
            raise Crash
        return {"count": 1}


@pytest.fixture
def payment(monkeypatch: Any) -> Payment:
    """Give the handler of a run on thread "t" that was lost and is told of."""
    monkeypatch.setattr("stateknot.registry._graphs", {})
    handler = Payment()
    builder = GraphBuilder("sample.payment", state=Loop).add_edge(START, "pay")
    register(builder.add_node("pay", handler, at_most_once=True).compile())
    run = start_run("sample.payment", {}, thread_id="t")
    with pytest.raises(Crash):
        drive(run.id)
    handler.is_down = False
    return handler


@pytest.fixture
def lost(payment: Payment) -> Run:
    """Give the run, at its failure."""
    from stateknot.models import Run

    run = drive(Run.objects.get().id)
    assert (run.status, run.error_code, payment.calls) == ("failed", CODE, 1)
    return run


def test_retry_over_http_runs_it_again_only_on_purpose(
    lost: Run, payment: Payment
) -> None:
    client = client_with("retry_run")
    assert send(client, "POST", "threads/t/retry", {}).status_code == 202
    assert (drive(lost.id).error_code, payment.calls) == (CODE, 1)
    body = {"rerun_unknown": True}
    assert send(client, "POST", "threads/t/retry", body).status_code == 202
    assert (drive(lost.id).status, payment.calls) == ("completed", 2)


def test_retry_by_command_runs_it_again_only_on_purpose(
    lost: Run, payment: Payment
) -> None:
    call_command("stateknot_retry", "t", stdout=StringIO())
    assert (drive(lost.id).error_code, payment.calls) == (CODE, 1)
    call_command("stateknot_retry", "t", "--rerun-unknown", stdout=StringIO())
    assert (drive(lost.id).status, payment.calls) == ("completed", 2)


@pytest.mark.parametrize("given", [{}, {"rerun_unknown": "on"}])
def test_retry_on_its_page_wants_a_tick(
    lost: Run, payment: Payment, given: dict[str, str]
) -> None:
    operator = client_of("ada", "view_run", "retry_run")
    page = operator.get(url_of(lost))
    assert 'name="rerun_unknown"' in page.content.decode()
    assert page.context["results"] == []
    data = {"shown": page.context["token"], **given}
    operator.post(url_of(lost, "retry"), data)
    run = drive(lost.id)
    assert (run.status == "completed", payment.calls) == (bool(given), 1 + len(given))


def test_update_as_the_node_goes_on_without_it(lost: Run, payment: Payment) -> None:
    """What a person found out stands in the place of its result."""
    from stateknot.services import resume_run

    update_state("t", {"count": 1}, as_node="pay", actor="ada")
    resume_run("t", actor="ada")
    assert (drive(lost.id).status, payment.calls) == ("completed", 1)
