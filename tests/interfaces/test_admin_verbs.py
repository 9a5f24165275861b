"""Retry, resume and answer: who may, when, and what is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django_q.models import OrmQ

from stateknot.models import Checkpoint, JournalEvent, Run, Wait
from stateknot.services import fork_thread, start_run, update_state
from tests.interfaces.admin_samples import (
    Parcel,
    client_of,
    drive_on,
    driven,
    url_of,
)

if TYPE_CHECKING:
    from django.http import HttpResponse

pytestmark = pytest.mark.django_db

RIGHTS = {"retry": "retry_run", "resume": "resume_run", "edit": "edit_state"}


def token_of(client: Client, run: Run) -> dict[str, str]:
    return {"shown": client.get(url_of(run)).context["token"]}


def told(response: HttpResponse) -> str:
    return " ".join(str(m) for m in response.context["messages"])  # type: ignore[attr-defined]


def post(client: Client, address: str, data: dict[str, Any]) -> str:
    """Post and return what the page behind it tells."""
    response = client.post(address, data, follow=True)
    assert response.status_code == 200
    return told(response)


def acts(run: Run) -> list[str]:
    """Who is named in the run's journal, in order."""
    rows = JournalEvent.objects.filter(run=run).exclude(actor="")
    return list(rows.order_by("number").values_list("actor", flat=True))


def test_retry_reopens_and_wakes_the_run() -> None:
    run = driven()
    operator = client_of("ada", "view_run", "retry_run")
    queued = OrmQ.objects.count()
    assert "Retried at fetch." in post(
        operator, url_of(run, "retry"), token_of(operator, run)
    )
    run.refresh_from_db()
    assert run.status == "pending"
    assert OrmQ.objects.count() == queued + 1


def test_retry_leaves_one_journal_and_one_history_entry() -> None:
    """AD-04: who, what, on which run."""
    run = driven()
    operator = client_of("ada", "view_run", "retry_run")
    post(operator, url_of(run, "retry"), token_of(operator, run))
    assert acts(run) == ["ada"]
    entry = LogEntry.objects.get(object_id=str(run.id))
    assert entry.user.get_username() == "ada"
    assert "Retried at fetch." in entry.get_change_message()


def test_retry_of_page_that_is_stale_is_refused() -> None:
    run = driven()
    operator = client_of("ada", "view_run", "retry_run")
    old = token_of(operator, run)
    update_state("t", {"weight": 2})
    assert "moved on" in post(operator, url_of(run, "retry"), old)
    run.refresh_from_db()
    assert run.status == "failed"


@pytest.mark.parametrize("token", ["", "forged", "a/b:c"])
def test_retry_without_a_true_token_is_refused(token: str) -> None:
    """AD-03."""
    run = driven()
    operator = client_of("ada", "view_run", "retry_run")
    assert "nothing was done" in post(operator, url_of(run, "retry"), {"shown": token})
    run.refresh_from_db()
    assert run.status == "failed"


def test_retry_with_the_token_of_another_run_is_refused() -> None:
    run, other = driven(), driven(thread_id="other")
    operator = client_of("ada", "view_run", "retry_run")
    data = token_of(operator, other)
    assert "nothing was done" in post(operator, url_of(run, "retry"), data)


def test_retry_of_completed_run_is_refused_with_the_reason() -> None:
    run = driven(address="here")
    operator = client_of("ada", "view_run", "retry_run")
    data = token_of(operator, run)
    assert "only a failed run" in post(operator, url_of(run, "retry"), data)
    assert not LogEntry.objects.exists()


def test_retry_of_earlier_run_does_not_touch_the_newer_one() -> None:
    old = driven()
    new = driven()
    operator = client_of("ada", "view_run", "retry_run")
    data = token_of(operator, old)
    assert "A newer run" in post(operator, url_of(old, "retry"), data)
    new.refresh_from_db()
    assert new.status == "failed"


@pytest.mark.parametrize("act", sorted(RIGHTS))
@pytest.mark.parametrize("others", [True, False])
def test_act_without_its_permission_is_forbidden(act: str, others: bool) -> None:
    """AD-04: by a direct POST as well, whatever else one may do."""
    run = driven()
    rest = [right for name, right in RIGHTS.items() if others and name != act]
    client = client_of("ada", "view_run", *rest)
    before = Checkpoint.objects.count()
    data = {**token_of(client, run), "state": "{}"}
    assert client.post(url_of(run, act), data).status_code == 403
    run.refresh_from_db()
    assert (run.status, Checkpoint.objects.count()) == ("failed", before)


@pytest.mark.parametrize("act", sorted(RIGHTS))
def test_act_without_the_right_to_see_runs_is_forbidden(act: str) -> None:
    run = driven()
    client = client_of("ada", RIGHTS[act])
    assert client.post(url_of(run, act), {}).status_code == 403


def test_act_needs_the_csrf_token() -> None:
    run = driven()
    known = client_of("ada", "view_run", "retry_run")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = known.cookies
    data = token_of(known, run)
    assert strict.post(url_of(run, "retry"), data).status_code == 403


def test_get_of_an_act_changes_nothing() -> None:
    """It leads to the page: a login may have dropped the POST."""
    run = driven()
    client = client_of("ada", "view_run", "retry_run")
    assert client.get(url_of(run, "retry")).headers["Location"] == url_of(run)
    run.refresh_from_db()
    assert run.status == "failed"


def test_resume_lets_a_fork_go_on() -> None:
    driven()
    fork_thread("t", "copy")
    run = Run.objects.get(thread__key="copy")
    operator = client_of("ada", "view_run", "resume_run")
    data = token_of(operator, run)
    assert post(operator, url_of(run, "resume"), data) == "Resumed."
    assert drive_on(run).failed_node == "fetch"


def test_resume_of_run_with_a_question_is_refused() -> None:
    run = driven("tests.admin_ask")
    operator = client_of("ada", "view_run", "resume_run")
    data = token_of(operator, run)
    assert "answer its question" in post(operator, url_of(run, "resume"), data)


def questions() -> tuple[Run, Wait, Wait]:
    """A run that asks, with its flat and its free question."""
    run = driven("tests.admin_ask")
    waits = {wait.key: wait for wait in Wait.objects.filter(run=run)}
    return run, waits["flat"], waits["free"]


def test_question_form_comes_from_its_schema(admin_client: Client) -> None:
    run, *_ = questions()
    html = admin_client.get(url_of(run)).content.decode()
    assert ">Carrier<" in html
    assert '<option value="0" selected>post</option>' in html
    assert "<b>it</b>" not in html
    assert "Anything &lt;else&gt;?" in html


def test_answers_let_the_run_complete() -> None:
    run, flat, free = questions()
    person = client_of("ada", "view_run", "answer_wait")
    data = {"answer.approve": "0", "answer.carrier": "1", "answer.days": ""}
    assert "Answered flat" in post(person, url_of(run, "answer", flat.id), data)
    assert "Answered free" in post(
        person, url_of(run, "answer", free.id), {"json": '"né"'}
    )
    assert drive_on(run).status == "completed"
    given = Wait.objects.get(id=flat.id)
    assert b'"approve":true,"carrier":"courier","days":null' in bytes(given.answer)
    assert given.answered_by == "ada"
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"answer.approve": ""}, "This field is required."),
        ({"answer.approve": "0", "answer.days": "-1"}, "greater than or equal to 0"),
        ({"answer.approve": "7"}, "Select a valid choice"),
    ],
)
def test_answer_that_does_not_fit_keeps_what_was_typed(
    admin_client: Client, data: dict[str, str], problem: str
) -> None:
    run, flat, _ = questions()
    html = admin_client.post(
        url_of(run, "answer", flat.id), {**data, "answer.carrier": "1"}
    ).content.decode()
    assert problem in html
    assert '<option value="1" selected>courier</option>' in html
    assert Wait.objects.get(id=flat.id).status == "open"


def test_answer_that_is_no_json_says_where(admin_client: Client) -> None:
    run, _, free = questions()
    address = url_of(run, "answer", free.id)
    html = admin_client.post(address, {"json": "yes please"}).content.decode()
    assert "line 1, column 1" in html
    assert "yes please" in html


def test_second_answer_is_refused(admin_client: Client) -> None:
    run, _, free = questions()
    address = url_of(run, "answer", free.id)
    post(admin_client, address, {"json": "1"})
    assert "not open any more" in post(admin_client, address, {"json": "2"})
    assert bytes(Wait.objects.get(id=free.id).answer) == b"1"


def test_answer_without_permission_is_forbidden() -> None:
    run, _, free = questions()
    client = client_of("ada", "view_run", "retry_run", "resume_run", "edit_state")
    response = client.post(url_of(run, "answer", free.id), {"json": "1"})
    assert response.status_code == 403
    assert Wait.objects.get(id=free.id).status == "open"


def test_verbs_of_unknown_run_are_not_found(admin_client: Client) -> None:
    run = start_run("tests.admin", Parcel())
    address = url_of(run, "retry")
    Run.objects.all().delete()
    assert admin_client.post(address, {}).status_code == 404
