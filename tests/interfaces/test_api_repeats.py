"""Requests that are sent again under an idempotency key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from stateknot.api.repeating import repeatable
from stateknot.api.urls import urlpatterns
from stateknot.models import AnsweredRequest, JournalEvent, Run, Thread
from stateknot.services import cancel_run
from stateknot.services.repeats import forget_answers
from tests.blocking import together
from tests.interfaces.samples import (
    ALL,
    TOKEN,
    Owners,
    client_named,
    client_with,
    drive,
    send,
    start_order,
)

pytestmark = pytest.mark.django_db
START = {"graph": "sample.order", "state": {"order_id": 7}}


def post(client: Client, path: str = "runs", body: Any = START, key: str = "k") -> Any:
    return send(client, "POST", path, body, Idempotency_Key=key)


def test_ap_01_repeated_start_gives_the_same_answer() -> None:
    """AP-01: also after the run has gone on; what was done is not done again."""
    client = client_with("start_run")
    first = post(client)
    drive(first.json()["id"])
    second = post(client)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content
    assert second.headers["Location"] == first.headers["Location"]
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("thread_id", [None, "t"])
def test_ap_01_starts_under_one_key_at_once_give_one_run(thread_id: str | None) -> None:
    """AP-01: a repeat that arrives before the first is stored starts nothing twice."""
    cookies = client_with("start_run").cookies

    def start() -> tuple[int, str]:
        client = Client()
        client.cookies = cookies
        answer = post(client, body=START | {"thread_id": thread_id})
        return answer.status_code, answer.json().get("id")

    found = set(together(*[start] * 4))
    assert found == {(201, str(Run.objects.get().id))}


@pytest.mark.parametrize(
    "other", [START | {"state": {"order_id": 8}}, START | {"metadata": {"a": 1}}]
)
def test_ap_01_other_request_under_a_used_key_is_refused(other: Any) -> None:
    """AP-01: a key is for one request."""
    client = client_with(*ALL)
    run = post(client).json()
    cancel = f"runs/{run['id']}/cancel"
    for answer in (post(client, body=other), post(client, cancel, {})):
        assert (answer.status_code, answer.json()["code"]) == (
            422,
            "request.key_reused",
        )
        assert "idempotency key 'k'" in answer.json()["detail"]
    assert Run.objects.get().cancel_requested_at is None


def test_ap_01_key_is_the_callers_own() -> None:
    """AP-01: under the same key another user starts a run of his own."""
    ids = [
        post(client_named(name, "start_run")).json()["id"]
        for name in ("first", "second")
    ]
    assert len(set(ids)) == 2


def test_request_that_differs_in_spelling_only_is_the_same() -> None:
    client = client_with("start_run")
    texts = (
        b'{"graph": "sample.order", "state": {"order_id": 7}}',
        b'{"state":{"order_id":7},"graph":"sample.order"}',
    )
    first, second = (post(client, body=text) for text in texts)
    assert second.content == first.content


@pytest.mark.parametrize(
    ("path", "body", "state"),
    [
        ("threads/t/retry", {}, {"broken": True}),
        ("threads/t/resume", {"value": {"approved": True}}, {"questions": 1}),
        ("runs/{run}/cancel", {}, {"questions": 1}),
        ("runs/{run}/move", {"to": "current"}, {"questions": 1}),
    ],
)
def test_act_repeated_under_its_key_acts_once(path: str, body: Any, state: Any) -> None:
    """AP-01: not only a start."""
    run = start_order("t", **state)
    client = client_with(*ALL)
    first = post(client, path.format(run=run.id), body)
    assert first.status_code in (200, 202)
    rows = JournalEvent.objects.count()
    again = post(client, path.format(run=run.id), body)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert JournalEvent.objects.count() == rows


def test_refused_request_leaves_no_answer_behind() -> None:
    """It did nothing, so the same request may succeed later."""
    holder = start_order("t", driven=False)
    client = client_with("start_run")
    body = START | {"thread_id": "t"}
    assert post(client, body=body).status_code == 409
    cancel_run(holder.id, reason="")
    assert post(client, body=body).status_code == 201


def test_ap_02_answer_about_a_thread_lost_from_sight_is_not_repeated(
    settings: Any,
) -> None:
    """AP-02: rules hold for what was once told as well."""
    settings.STATEKNOT = {"object_access": f"{Owners.__module__}.Owners"}
    client = client_named("first", "start_run")
    post(client)
    Run.objects.update(actor="second")
    assert post(client).status_code == 404


def test_ap_06_request_is_kept_as_a_keyed_digest() -> None:
    """AP-06: a secret in a start is not kept with its answer."""
    client = client_with("start_run")
    post(client, body=START | {"state": {"order_id": 7, "token": TOKEN}})
    row = AnsweredRequest.objects.get()
    kept = [bytes(row.request_digest), bytes(row.body), repr(row.headers).encode()]
    assert TOKEN.encode() not in b"".join(kept)


@pytest.mark.parametrize("key", ["", "k" * 256, "tab\tkey"])
def test_unfit_key_is_refused(key: str) -> None:
    answer = post(client_with("start_run"), key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "request.parse_error")


def test_every_post_can_be_repeated() -> None:
    """A verb that was added without it would be done twice after a timeout."""
    views = [pattern.callback.view_class for pattern in urlpatterns]
    posts = [view.post for view in views if hasattr(view, "post")]
    marked = {repeatable(lambda: None).__code__}  # type: ignore[arg-type]
    assert posts
    assert [post for post in posts if post.__code__ not in marked] == []


def test_answers_are_forgotten_after_their_time() -> None:
    client = client_with("start_run")
    post(client, key="old")
    AnsweredRequest.objects.update(answered_at=F("answered_at") - timedelta(hours=25))
    post(client, key="new")
    assert forget_answers() == 1
    assert [row.key for row in AnsweredRequest.objects.all()] == ["new"]
    assert Thread.objects.count() == 2
