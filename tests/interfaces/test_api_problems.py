"""Refusals of the API: who may call, what a body may be, how a problem looks."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from stateknot.api.problems import STATUSES
from stateknot.api.urls import urlpatterns
from stateknot.errors import StateKnotError
from tests.interfaces.samples import ALL, API, client_with, send, start_order

pytestmark = pytest.mark.django_db
RUN = "0198c5a2-0000-7000-8000-000000000000"
ANSWER = {"value": 1}
CALLS = [
    ("GET", "graphs", None, ["view_run"]),
    ("GET", "runs", None, ["view_run"]),
    ("POST", "runs", {"graph": "sample.order", "state": {}}, ["start_run"]),
    ("GET", f"runs/{RUN}", None, ["view_run"]),
    ("GET", f"runs/{RUN}/journal", None, ["view_run"]),
    ("GET", "threads/t", None, ["view_run"]),
    ("GET", "threads/t/checkpoints", None, ["view_run"]),
    ("GET", f"threads/t/checkpoints/{RUN}", None, ["view_run"]),
    ("POST", "threads/t/resume", {}, ["resume_run"]),
    ("POST", "threads/t/resume", ANSWER, ["answer_wait"]),
    (
        "POST",
        "threads/t/resume",
        ANSWER | {"checkpoint_id": RUN},
        ["answer_wait", "resume_run"],
    ),
    ("POST", "threads/t/retry", {}, ["retry_run"]),
    ("POST", f"runs/{RUN}/move", {"to": "current"}, ["move_run"]),
    ("PATCH", "threads/t/state", {"update": {}}, ["edit_state"]),
    ("POST", "threads/t/done", {"node": "ship"}, ["edit_state"]),
    ("POST", "threads/t/fork", {}, ["fork_thread"]),
    ("POST", f"runs/{RUN}/cancel", {}, ["cancel_run"]),
    ("GET", "threads", None, ["view_run"]),
    ("GET", "questions", None, ["view_wait"]),
    ("GET", f"questions/{RUN}", None, ["view_wait"]),
    ("POST", f"questions/{RUN}/answer", {"value": 1}, ["answer_wait"]),
    ("GET", "graphs/sample.order/revisions", None, ["view_graphrevision"]),
    ("GET", "graphs/sample.order/revisions/x", None, ["view_graphrevision"]),
]


@pytest.mark.parametrize(("method", "path", "body", "needed"), CALLS)
def test_caller_without_login_gets_401(
    method: str, path: str, body: object, needed: list[str]
) -> None:
    answer = send(Client(), method, path, body)
    assert (answer.status_code, answer.json()["code"]) == (
        401,
        "request.not_authenticated",
    )
    assert answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(("method", "path", "body", "needed"), CALLS)
def test_caller_without_the_permission_gets_403(
    method: str, path: str, body: object, needed: list[str]
) -> None:
    """Every other permission does not help; the missing one is named."""
    start_order("t")
    for name in needed:
        client = client_with(*(other for other in ALL if other != name))
        answer = send(client, method, path, body)
        assert answer.status_code == 403
        assert f"stateknot.{name}" in answer.json()["detail"]
        client.session.flush()
        answer.wsgi_request.user.delete()


@pytest.mark.parametrize(("method", "path", "body", "needed"), CALLS)
def test_caller_with_just_the_permission_gets_through(
    method: str, path: str, body: object, needed: list[str]
) -> None:
    start_order("t", questions=1)
    answer = send(client_with(*needed), method, path, body)
    assert answer.status_code not in (401, 403)


def test_csrf_is_asked_for_with_a_session() -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = client_with("start_run").cookies
    answer = send(client, "POST", "runs", {})
    assert (answer.status_code, answer.json()["code"]) == (
        403,
        "request.permission_denied",
    )


def test_problem_has_the_members_of_rfc_9457() -> None:
    answer = send(client_with("start_run"), "POST", "runs", {"graph": 7, "colour": 1})
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["type"] == "about:blank"
    assert (problem["title"], problem["status"]) == ("Bad Request", 400)
    assert {error["at"] for error in problem["errors"]} == {"graph", "state", "colour"}
    assert "colour: Extra inputs are not permitted" in problem["detail"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"graph": ', "line 1, column"),
        ("", "JSON"),
        (b"\xff\xfe", "UTF-8"),
        ('{"graph": NaN}', "NaN"),
        ("[" * 100_000, ""),
        ("[" * 300 + "]" * 300, "200 levels"),
        ("9" * 5000, "cannot be read"),
    ],
)
def test_body_that_is_no_json_is_refused(body: str | bytes, told: str) -> None:
    answer = send(client_with("start_run"), "POST", "runs", body)
    assert answer.status_code == 400
    assert told in answer.json()["detail"] or not body


def test_body_over_the_limit_is_refused_unread(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    body = {"graph": "sample.order", "state": {"checks": ["x" * 1000]}}
    answer = send(client_with("start_run"), "POST", "runs", body)
    assert (answer.status_code, answer.json()["code"]) == (
        413,
        "request.body_too_large",
    )


def test_value_over_the_limit_of_a_field_is_refused(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    state = {"order_id": 7, "checks": ["x" * 3_000_000]}
    body = {"graph": "sample.order", "state": state}
    answer = send(client_with("start_run"), "POST", "runs", body)
    assert (answer.status_code, answer.json()["path"]) == (422, "checks")


def test_other_media_type_is_refused() -> None:
    client = client_with("start_run")
    assert client.post(f"{API}/runs", {"graph": "x"}).status_code == 415
    answer = client.get(f"{API}/graphs", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (
        406,
        "request.not_acceptable",
    )


@pytest.mark.parametrize("path", ["", "nothing", "runs/x/y", "threads/%00", "graphs/"])
def test_unknown_address_is_a_problem(path: str) -> None:
    answer = send(client_with("view_run"), "GET", path)
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


def test_other_method_is_a_problem() -> None:
    answer = send(client_with("view_run"), "DELETE", "runs")
    assert (answer.status_code, answer.json()["code"]) == (
        405,
        "request.method_not_allowed",
    )


def test_every_refusal_of_a_caller_has_a_status() -> None:
    """A new family of errors is given its status on purpose."""
    families = set(StateKnotError.__subclasses__())
    told = {
        kind for kind in families if issubclass(kind, tuple(k for k, _ in STATUSES))
    }
    raised_by_handlers = {"NodeError", "RetryableError"}
    assert {kind.__name__ for kind in families - told} == raised_by_handlers


def test_openapi_document_describes_this_api_alone() -> None:
    answer = client_with("view_run").get(f"{API}/schema")
    document = answer.json()
    assert document["openapi"] == "3.1.0"
    assert all(path.startswith(f"{API}/") for path in document["paths"])
    named = [p for p in urlpatterns if p.name and p.name != "schema"]
    assert len(document["paths"]) == len(named)
    for method, verb in (("patch", "state"), ("post", "done")):
        edit = document["paths"][f"{API}/threads/{{thread_id}}/{verb}"][method]
        told = {"200", "401", "403", "404", "409", "412", "422", "428"}
        assert told <= set(edit["responses"])
        assert "application/problem+json" in edit["responses"]["412"]["content"]


def test_openapi_document_is_valid_without_warnings() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
