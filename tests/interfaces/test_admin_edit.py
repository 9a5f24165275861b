"""Editing a state by hand: what is written, what is refused, what is never lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry

from stateknot.models import Checkpoint, JournalEvent, Run
from stateknot.selectors import get_state
from stateknot.services import start_run, update_state
from tests.interfaces.admin_samples import (
    SECRET,
    Parcel,
    client_of,
    drive_on,
    driven,
    form_of,
    url_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Client:
    return client_of("ada", "view_run", "edit_state")


def opened(client: Client, run: Run) -> dict[str, str]:
    """The form as it comes."""
    return form_of(client.get(url_of(run, "edit")))


def typed(form: dict[str, str], **fields: Any) -> dict[str, str]:
    """The form with fields of the state changed in its text."""
    text = json.dumps({**json.loads(form["state"]), **fields}, ensure_ascii=False)
    return {**form, "state": text}


def save(client: Client, run: Run, form: dict[str, str]) -> HttpResponse:
    return client.post(url_of(run, "edit"), form)  # type: ignore[return-value]


def state_of(thread_id: str = "t") -> Parcel:
    snapshot = get_state(thread_id)
    assert snapshot is not None
    values: Parcel = snapshot.values
    return values


def test_edit_writes_the_changed_field_alone(operator: Client) -> None:
    run = driven()
    assert save(operator, run, typed(opened(operator, run), address="here"))
    assert state_of() == Parcel(address="here")
    head = Checkpoint.objects.order_by("sequence").last()
    assert head is not None
    assert json.loads(bytes(head.changes)) == {"address": "here"}


def test_edit_leaves_one_journal_and_one_history_entry(operator: Client) -> None:
    """AD-04: who, which fields, from which checkpoint to which."""
    run = driven()
    before = run.head_id
    save(operator, run, typed(opened(operator, run), address="here", weight=2))
    run.refresh_from_db()
    row = JournalEvent.objects.exclude(actor="").get()
    assert (row.actor, row.checkpoint_id) == ("ada", run.head_id)
    message = LogEntry.objects.get(object_id=str(run.id)).get_change_message()
    assert message == f"Edited address, weight. {before} → {run.head_id}"


def test_edit_of_accumulating_field_replaces_it(operator: Client) -> None:
    run = driven(notes=["one", "two"])
    save(operator, run, typed(opened(operator, run), notes=["two"]))
    assert state_of().notes == ["two"]


def test_saving_unchanged_text_writes_nothing(operator: Client) -> None:
    """AD-02: text of any script comes back as it was shown."""
    run = driven()
    form = opened(operator, run)
    assert "中国 é" in form["state"]
    before = Checkpoint.objects.count()
    response = operator.post(url_of(run, "edit"), form, follow=True)
    assert "Nothing was changed" in response.content.decode()
    assert Checkpoint.objects.count() == before


def test_masked_secret_is_left_as_it_is(operator: Client) -> None:
    run = driven()
    save(operator, run, typed(opened(operator, run), weight=3))
    assert state_of().token == SECRET


def test_secret_can_be_replaced(operator: Client) -> None:
    run = driven()
    save(operator, run, typed(opened(operator, run), token="new"))
    assert state_of().token == "new"


def _break(form: dict[str, str], change: str) -> dict[str, str]:
    return {**form, "state": change}


REFUSED: dict[str, tuple[Callable[[dict[str, str]], dict[str, str]], str]] = {
    "broken": (lambda f: _break(f, '{\n "weight": 1,,\n}'), "line 2, column 14"),
    "empty": (lambda f: _break(f, "  "), "The text is empty."),
    "list": (lambda f: _break(f, "[1]"), "A state is a JSON object"),
    "twice": (lambda f: _break(f, '{"weight": 1, "weight": 2}'), "stands twice"),
    "nan": (lambda f: _break(f, '{"weight": NaN}'), "NaN is not a JSON number"),
    "deep": (lambda f: _break(f, "[" * 100_000), "nested too deeply"),
    "gone": (lambda f: _break(f, '{"weight": 7}'), "missing: address"),
    "unknown": (lambda f: typed(f, colour="red"), "unknown: colour"),
    "type": (lambda f: typed(f, weight="heavy"), "weight: Input should be a valid int"),
    "profile": (lambda f: typed(f, weight=2**60), "weight"),
    "surrogate": (lambda f: typed(f, label="x\ud800").copy(), "label"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_text_that_does_not_fit_is_kept_with_the_reason(
    operator: Client, case: str
) -> None:
    """AD-01: an error with its place, nothing written, nothing lost."""
    run = driven()
    make, reason = REFUSED[case]
    form = make(opened(operator, run))
    form["state"] = form["state"].replace("\ud800", "\\ud800")
    before = Checkpoint.objects.count()
    response = save(operator, run, form)
    page = response.context["form"]  # type: ignore[attr-defined]
    assert reason in " ".join(page.errors["state"])
    assert page["state"].value() == form["state"]
    assert Checkpoint.objects.count() == before


def test_stale_form_shows_the_other_change_and_writes_nothing(
    operator: Client,
) -> None:
    """AD-03: the next form has the newest state with one's own change in it."""
    run = driven()
    form = typed(opened(operator, run), address="mine")
    update_state("t", {"weight": 5, "address": "theirs"})
    before = Checkpoint.objects.count()
    response = save(operator, run, form)
    assert response.status_code == 409
    conflicts = {c.name: c for c in response.context["conflicts"]}  # type: ignore[attr-defined]
    assert (conflicts["weight"].now, conflicts["weight"].yours) == ("5", None)
    assert conflicts["address"].now == '"theirs"'
    assert conflicts["address"].yours == '"mine"'
    assert Checkpoint.objects.count() == before
    assert state_of().address == "theirs"
    save(operator, run, form_of(response))
    assert (state_of().weight, state_of().address) == (5, "mine")


@pytest.mark.parametrize("token", ["", "forged", None])
def test_form_without_a_true_token_is_refused(
    operator: Client, token: str | None
) -> None:
    """AD-03: the text can be copied, but not saved by a second click."""
    run = driven()
    form = typed(opened(operator, run), address="mine")
    form.pop("shown")
    if token is not None:
        form["shown"] = token
    before = Checkpoint.objects.count()
    response = save(operator, run, form)
    assert response.status_code == 409
    assert "mine" in response.content.decode()
    assert "form" not in response.context  # type: ignore[attr-defined]
    assert Checkpoint.objects.count() == before


def test_edit_can_mark_the_failed_node_as_done(operator: Client) -> None:
    run = driven()
    form = {**typed(opened(operator, run), notes=["by hand"]), "as_node": "fetch"}
    save(operator, run, form)
    retrier = client_of("bob", "view_run", "retry_run")
    token = retrier.get(url_of(run)).context["token"]
    retrier.post(url_of(run, "retry"), {"shown": token})
    assert drive_on(run).status == "completed"
    assert state_of().notes == ["by hand", "shipped"]


def test_marking_as_done_needs_no_change(operator: Client) -> None:
    run = driven()
    save(operator, run, {**opened(operator, run), "as_node": "fetch"})
    snapshot = get_state("t")
    assert snapshot is not None
    assert snapshot.next_nodes == ["ship"]


def test_node_that_is_not_due_cannot_be_marked(operator: Client) -> None:
    run = driven()
    before = Checkpoint.objects.count()
    response = save(operator, run, {**opened(operator, run), "as_node": "ship"})
    assert response.context["form"].errors["as_node"]  # type: ignore[attr-defined]
    assert Checkpoint.objects.count() == before


def test_state_of_earlier_run_cannot_be_edited(operator: Client) -> None:
    old = driven()
    form = typed(opened(operator, old), address="mine")
    start_run("tests.admin", Parcel(), thread_id="t")
    assert save(operator, old, form).status_code == 409
    assert state_of().address == ""
