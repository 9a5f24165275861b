"""The overview above the list of models: what needs a person, and the lists behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from stateknot.models import JournalEvent, Run, Wait
from stateknot.pictures.charts import Column, Part, render_bar, render_columns
from stateknot.selectors.attention import (
    Age,
    Need,
    count_day,
    count_driven,
    count_need,
    match_need,
)
from stateknot.services import start_run
from tests.interfaces.admin_samples import Parcel, client_of, driven

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

INDEX = "/admin/stateknot/"


def ago(**spans: float) -> datetime:
    return datetime.now(UTC) - timedelta(**spans)


def age_journal(run: Run) -> None:
    JournalEvent.objects.filter(run=run).update(recorded_at=ago(minutes=5))


def needing(need: Need) -> list[Run]:
    return list(Run.objects.filter(match_need(need)))


def test_failed_run_counts_until_a_newer_one_stands_on_its_thread() -> None:
    run = driven()
    assert needing(Need.FAILED) == [run]
    assert count_need(Need.FAILED).since == run.ended_at
    start_run("tests.admin", Parcel(), thread_id="t")
    assert needing(Need.FAILED) == []


@pytest.mark.parametrize("status", ["pending", "running"])
def test_due_run_that_nobody_drives_is_stalled(status: str) -> None:
    """AD-12: "running" with no worker is told from running."""
    run = start_run("tests.admin", Parcel(), thread_id="t")
    Run.objects.update(status=status)
    assert needing(Need.STALLED) == []
    age_journal(run)
    assert needing(Need.STALLED) == [run]


def test_run_under_a_live_lease_is_not_stalled() -> None:
    """A handler may take longer than the journal is silent."""
    run = start_run("tests.admin", Parcel(), thread_id="t")
    age_journal(run)
    Run.objects.update(status="running", holder="w", lease_expires_at=ago(minutes=-1))
    assert needing(Need.STALLED) == []
    assert count_driven() == (1, 1)


def test_timer_is_stalled_only_once_it_is_long_due() -> None:
    run = start_run("tests.admin", Parcel(), thread_id="t")
    age_journal(run)
    Run.objects.update(status="waiting", wake_at=ago(minutes=-10))
    assert needing(Need.STALLED) == []
    Run.objects.update(wake_at=ago(minutes=3))
    assert needing(Need.STALLED) == [run]


def test_closing_run_needs_a_look() -> None:
    run = driven()
    Run.objects.update(status="closing", ended_at=None)
    assert needing(Need.CLOSING) == [run]


def test_day_counts_every_run_of_the_day_once() -> None:
    driven(thread_id="a")
    driven(thread_id="b", address="x")
    old = driven(thread_id="c")
    hour = driven(thread_id="d")
    Run.objects.filter(id=old.id).update(created_at=ago(days=1, minutes=1))
    Run.objects.filter(id=hour.id).update(created_at=ago(hours=2, minutes=30))
    counted = {(row.status, row.hour): row.count for row in count_day()}
    assert counted == {("failed", 0): 1, ("completed", 0): 1, ("failed", 2): 1}


def test_every_number_leads_to_a_list_of_as_many_rows(admin_client: Client) -> None:
    """A count that its list does not bear out is worse than none."""
    driven(thread_id="a")
    driven(thread_id="b")
    driven("tests.admin_ask", thread_id="d")
    # Behind the others, whose worker might take its turn for it.
    stalled = start_run("tests.admin", Parcel(), thread_id="c")
    age_journal(stalled)
    Wait.objects.filter(key="flat").update(asked_at=ago(days=2))
    found = admin_client.get(INDEX).context
    figures = [
        *(*found["needs"], *found["causes"], *found["questions"]),
        *(*found["statuses"], *(figure for figure, _ in found["graphs"])),
    ]
    counts = [figure.count for figure in figures]
    assert counts == [2, 1, 0, 2, 2, 1, 1, 0, 2, 1, 1, 3, 1]
    for figure in figures:
        changelist = admin_client.get(figure.url).context["cl"]
        assert changelist.result_count == figure.count, figure


def test_overview_costs_the_same_for_more_rows(admin_client: Client) -> None:
    driven(thread_id="0")
    driven("tests.admin_ask", thread_id="00")
    admin_client.get(INDEX)
    with CaptureQueriesContext(connection) as few:
        admin_client.get(INDEX)
    for number in range(1, 6):
        driven(thread_id=str(number))
        driven("tests.admin_ask", thread_id=f"a{number}")
    with CaptureQueriesContext(connection) as many:
        admin_client.get(INDEX)
    assert len(many) == len(few)


def test_overview_of_nothing_says_so(admin_client: Client) -> None:
    html = admin_client.get(INDEX).content.decode()
    assert "No run was admitted." in html
    assert "Runs" in html


@pytest.mark.parametrize(
    ("permission", "seen", "hidden"),
    [
        ("view_run", "failed, to be repaired", "open questions"),
        ("view_wait", "open questions", "failed, to be repaired"),
    ],
)
def test_overview_shows_what_one_may_list(
    permission: str, seen: str, hidden: str
) -> None:
    driven()
    html = client_of("viewer", permission).get(INDEX).content.decode()
    assert seen in html
    assert hidden not in html


def test_overview_has_nothing_inline(admin_client: Client) -> None:
    """The strict policy would drop it."""
    driven()
    html = admin_client.get(INDEX).content.decode()
    assert "style=" not in html
    assert "<style" not in html
    assert "<script>" not in html


@pytest.mark.parametrize(("age", "found"), [(Age.DAY, 1), (Age.OVER_DAY, 1)])
def test_run_is_found_by_age(admin_client: Client, age: Age, found: int) -> None:
    """AD-06."""
    driven(thread_id="new")
    old = driven(thread_id="old")
    Run.objects.filter(id=old.id).update(created_at=ago(days=3))
    url = reverse("admin:stateknot_run_changelist")
    assert admin_client.get(f"{url}?age={age}").context["cl"].result_count == found


@pytest.mark.parametrize("query", ["actor=ada", "q=ada"])
def test_run_is_found_by_who_started_it(admin_client: Client, query: str) -> None:
    """AD-06."""
    run = driven(thread_id="a")
    driven(thread_id="b")
    Run.objects.filter(id=run.id).update(actor="ada")
    url = reverse("admin:stateknot_run_changelist")
    rows = list(admin_client.get(f"{url}?{query}").context["cl"].result_list)
    assert rows == [run]


@pytest.mark.parametrize("query", ["needs=nonsense", "age=nonsense", "needs="])
def test_filter_of_no_known_value_filters_nothing(
    admin_client: Client, query: str
) -> None:
    driven()
    url = reverse("admin:stateknot_run_changelist")
    assert admin_client.get(f"{url}?{query}").context["cl"].result_count == 1


def test_chart_escapes_and_shows_small_parts() -> None:
    part = Part(kind="failed", label="<b>", count=1)
    many = Part(kind="completed", label="ok", count=10_000)
    columns = [Column(label="<i>", parts=[many, part])]
    for svg in (
        render_columns(columns, title="<t>", key="k"),
        render_bar([many, part], most=10_001, title="<t>", key="k"),
    ):
        assert "sk-part-failed" in svg
        assert not any(tag in svg for tag in ("<b>", "<i>", "<t>", "style"))
        assert 'height="0.0"' not in svg
        assert 'width="0.0"' not in svg
