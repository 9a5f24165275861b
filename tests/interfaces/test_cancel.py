"""Cancelling a run: by command, over HTTP, in the admin. The service has its tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models.functions import Now

from stateknot.management.exit_codes import ExitCode
from stateknot.models import Run
from stateknot.runtime.recovery import sweep
from stateknot.selectors import get_run, get_timeline
from stateknot.services import start_run
from stateknot.storage import DjangoCheckpointer
from tests.application.desk import ASK, LINE, work
from tests.interfaces.admin_samples import client_of, url_of
from tests.interfaces.samples import client_with, send
from tests.interfaces.test_admin_verbs import post
from tests.interfaces.test_commands import UNKNOWN, call, call_json

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("desk")]


@pytest.fixture
def desk(register_only: Any) -> None:
    from tests.application.desk import build_all

    register_only(*build_all())


@pytest.fixture
def run(desk: None) -> Run:
    """A run that waits for an answer."""
    run = start_run(ASK, {}, thread_id="t")
    work()
    return run


@pytest.fixture
def driven(desk: None) -> Run:
    """A run that a worker elsewhere drives."""
    run = start_run(LINE, {}, thread_id="driven")
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), "elsewhere") is not None
    return run


def cancellers(run: Run) -> list[str]:
    return [
        row.actor
        for row in get_timeline(run.id)
        if any(event.kind == "run.cancel_requested" for event in row.events)
    ]


def test_command_ends_a_run_at_rest(run: Run) -> None:
    code, text = call("cancel", str(run.id), "--reason", "ordered twice")
    assert code == 0
    assert "was cancelled" in text
    assert get_run(run.id).cancel_reason == "ordered twice"
    (actor,) = cancellers(run)
    assert actor.startswith("command:")


def test_command_tells_of_a_run_that_is_driven(driven: Run) -> None:
    code, told = call_json("cancel", str(driven.id))
    assert (code, told["status"]) == (0, "running")
    assert told["cancel_requested_at"] is not None


def test_command_waits_for_the_end(
    driven: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease runs out, a sweep comes by."""

    def later(_seconds: float) -> None:
        past = Now() - timedelta(seconds=1)
        Run.objects.filter(id=driven.id).update(lease_expires_at=past)
        sweep()

    module = "stateknot.management.commands.stateknot_cancel"
    monkeypatch.setattr(f"{module}.time.sleep", later)
    code, told = call_json("cancel", str(driven.id), "--wait")
    assert (code, told["status"]) == (0, "cancelled")


def test_command_stops_waiting_after_its_timeout(driven: Run) -> None:
    code, text = call("cancel", str(driven.id), "--wait", "--timeout", "0.01")
    assert code == 1
    assert "sweep" in text


def test_command_says_when_nothing_is_left_to_cancel(desk: None) -> None:
    run = start_run(LINE, {}, thread_id="t")
    work()
    code, text = call("cancel", str(run.id))
    assert code == ExitCode.CONFLICT
    assert "completed" in text
    assert call("cancel", UNKNOWN)[0] == ExitCode.NOT_FOUND


def test_request_ends_a_run(run: Run) -> None:
    client = client_with("cancel_run", "view_run")
    answer = send(client, "post", f"runs/{run.id}/cancel", {"reason": "enough"})
    told = answer.json()
    assert (answer.status_code, told["status"]) == (202, "cancelled")
    assert (told["cancel_reason"], cancellers(run)) == ("enough", ["user-2"])
    again = send(client, "post", f"runs/{run.id}/cancel")
    assert again.json()["cancel_reason"] == "enough"


def test_request_that_cannot_be_met_is_a_problem(run: Run, driven: Run) -> None:
    client = client_with("cancel_run", "view_run")
    bad = send(client, "post", f"runs/{run.id}/cancel", {"reason": "x" * 501})
    assert bad.status_code == 400
    assert send(client, "post", f"runs/{UNKNOWN}/cancel").status_code == 404
    done = start_run(LINE, {}, thread_id="done")
    work()
    refused = send(client, "post", f"runs/{done.id}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "run.refused")
    assert get_run(run.id).status == "interrupted"


def test_request_needs_its_permission(run: Run) -> None:
    client = client_with("view_run", "retry_run")
    answer = send(client, "post", f"runs/{run.id}/cancel")
    assert answer.status_code == 403
    assert get_run(run.id).status == "interrupted"


def test_page_ends_a_run(run: Run) -> None:
    client = client_of("op", "view_run", "cancel_run")
    assert b"Cancel this run" in client.get(url_of(run)).content
    text = post(client, url_of(run, "cancel"), {"reason": "enough"})
    assert "Cancelled." in text
    assert get_run(run.id).cancel_reason == "enough"
    assert len(cancellers(run)) == 1
    assert LogEntry.objects.count() == 1
    assert b"Cancel this run" not in client.get(url_of(run)).content


def test_page_asks_the_worker_of_a_driven_run(driven: Run) -> None:
    client = client_of("op", "view_run", "cancel_run")
    assert "Asked the worker" in post(client, url_of(driven, "cancel"), {})
    assert "already" in post(client, url_of(driven, "cancel"), {})
    assert b"Cancel asked for" in client.get(url_of(driven)).content


def test_page_without_permission_offers_and_takes_nothing(run: Run) -> None:
    client = client_of("op", "view_run", "retry_run")
    assert b"Cancel this run" not in client.get(url_of(run)).content
    assert client.post(url_of(run, "cancel")).status_code == 403
    assert get_run(run.id).status == "interrupted"


def body(**fields: Any) -> dict[str, Any]:
    return {"graph": ASK, "state": {}, "thread_id": "t", **fields}


def test_request_queues_a_start_and_cancels_it(run: Run) -> None:
    """A run that waits for its thread is shown, and taken out of the line."""
    client = client_with("start_run", "cancel_run", "view_run")
    refused = send(client, "post", "runs", body())
    assert (refused.status_code, refused.json()["run_id"]) == (409, str(run.id))
    answer = send(client, "post", "runs", body(on_busy="enqueue"))
    told = answer.json()
    assert (answer.status_code, told["is_queued"]) == (201, True)
    ended = send(client, "post", f"runs/{told['id']}/cancel").json()
    assert (ended["status"], ended["is_queued"]) == ("cancelled", False)
    assert get_run(run.id).status == "interrupted"


def test_superseding_start_needs_the_permission_to_cancel(run: Run) -> None:
    starter = client_with("start_run")
    answer = send(starter, "post", "runs", body(on_busy="supersede"))
    assert answer.status_code == 403
    assert get_run(run.id).status == "interrupted"
    client = client_with("start_run", "cancel_run")
    assert send(client, "post", "runs", body(on_busy="supersede")).status_code == 201
    assert get_run(run.id).status == "cancelled"


def test_command_queues_a_start(run: Run) -> None:
    arguments = (ASK, "{}", "--thread", "t", "--on-busy", "enqueue")
    _, text = call("run", *arguments)
    assert "waits for its thread" in text
    _, told = call_json("run", *arguments)
    assert (told["run"]["is_queued"], told["checkpoint"]) == (True, None)


def test_page_of_a_queued_run_offers_to_cancel_it(run: Run) -> None:
    queued = start_run(ASK, {}, thread_id="t", on_busy="enqueue")
    client = client_of("op", "view_run", "cancel_run", "retry_run", "edit_state")
    page = client.get(url_of(queued))
    assert page.status_code == 200
    assert b"Cancel this run" in page.content
    assert page.context["offered"] == {"cancel"}
    assert "Cancelled." in post(client, url_of(queued, "cancel"), {})
    assert client.get(url_of(queued)).status_code == 200
