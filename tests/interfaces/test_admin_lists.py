"""The lists: found, filtered, ordered, at a cost that does not grow."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from uuid_utils.compat import uuid7

from stateknot.models import Checkpoint, GraphRevision, Run, Thread, Wait
from tests.interfaces.admin_samples import client_of, driven, url_of

pytestmark = pytest.mark.django_db

LISTS = ["run", "thread", "wait", "graphrevision"]
LARGE = ("output", "definition", "changes", "appends", "record", "request_digest")


def list_url(name: str, query: str = "") -> str:
    return reverse(f"admin:stateknot_{name}_changelist") + query


def listed(client: Client, name: str, query: str = "") -> list[Any]:
    return list(client.get(list_url(name, query)).context["cl"].result_list)


def copy_rows(count: int) -> None:
    """`count` more threads, each with a run and a question, as one run left them."""
    run = driven("tests.admin_ask", thread_id=f"copied for {count}")
    thread, revision = run.thread, run.revision
    wait = run.waits.all()[0]
    for number in range(count):
        thread.id, thread.key = uuid7(), f"copy {number} of {count}"
        thread.current_run = None
        thread.save(force_insert=True)
        revision.id, revision.digest = uuid7(), f"sha256:{count}-{number}"
        revision.save(force_insert=True)
        run.id, run.thread, run.actor = uuid7(), thread, f"actor {number}"
        run.save(force_insert=True)
        Thread.objects.filter(id=thread.id).update(current_run=run)
        wait.id, wait.run, wait.thread = uuid7(), run, thread
        wait.save(force_insert=True)


@pytest.mark.parametrize("name", LISTS)
def test_list_costs_the_same_for_5_rows_and_for_50(
    admin_client: Client, name: str, django_assert_num_queries: Any
) -> None:
    copy_rows(5)
    with CaptureQueriesContext(connection) as few:
        admin_client.get(list_url(name))
    copy_rows(45)
    with django_assert_num_queries(len(few)):
        page = admin_client.get(list_url(name))
    assert len(page.context["cl"].result_list) == 50


@pytest.mark.parametrize("name", LISTS)
def test_list_reads_no_large_column(admin_client: Client, name: str) -> None:
    driven("tests.admin_ask")
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(list_url(name))
    columns = " ".join(q["sql"].split(" FROM ")[0] for q in queries)
    assert not [name for name in LARGE if f'"{name}"' in columns]


@pytest.mark.parametrize(
    "query",
    [
        "?status=failed",
        "?graph_id=tests.admin",
        "?failed_node=fetch",
        "?error_code=node.failed",
        "?q=order-f",
        "?q=no+address",
        "?q=ConnectionError",
        "?q=node.failed",
    ],
)
def test_failed_run_is_found(admin_client: Client, query: str) -> None:
    """AD-06: by status, graph, node, error code, error text or thread."""
    failed = driven(thread_id="order-failed")
    driven("tests.admin_ask", thread_id="asks")
    assert listed(admin_client, "run", query) == [failed]


@pytest.mark.parametrize("part", [slice(0, None), slice(0, 23)])
def test_run_is_found_by_its_id_or_the_beginning_of_it(
    admin_client: Client, part: slice
) -> None:
    run = driven()
    Run.objects.filter(id=driven(thread_id="u").id).update(error_code="")
    assert run in listed(admin_client, "run", f"?q={str(run.id)[part]}")
    assert listed(admin_client, "run", "?q=ffffffff-ffff") == []


def test_search_wants_every_word(admin_client: Client) -> None:
    driven()
    assert listed(admin_client, "run", "?q=no+harbour") == []


def test_questions_stand_open_and_oldest_first(admin_client: Client) -> None:
    first = driven("tests.admin_ask", thread_id="a")
    second = driven("tests.admin_ask", thread_id="b")
    Wait.objects.filter(run=first, key="flat").update(status="closed")
    rows = [(w.run_id, w.key) for w in listed(admin_client, "wait")]
    assert rows[0] == (first.id, "free")
    assert {run for run, _ in rows[1:3]} == {second.id}
    assert rows[3] == (first.id, "flat")


def test_question_leads_to_its_run(admin_client: Client) -> None:
    run = driven("tests.admin_ask")
    wait = Wait.objects.filter(run=run).first()
    assert wait is not None
    page = admin_client.get(reverse("admin:stateknot_wait_change", args=[wait.pk]))
    assert page.headers["Location"] == f"{url_of(run)}#question-{wait.pk}"


def test_thread_page_lists_its_runs(admin_client: Client) -> None:
    runs = [driven(address="x"), driven(address="y")]
    address = reverse("admin:stateknot_thread_change", args=[runs[0].thread_id])
    html = admin_client.get(address).content.decode()
    assert all(url_of(run) in html for run in runs)


def test_revision_page_shows_its_definition(admin_client: Client) -> None:
    run = driven()
    address = reverse("admin:stateknot_graphrevision_change", args=[run.revision_id])
    html = admin_client.get(address).content.decode()
    assert "tests.admin" in html
    assert "&quot;fetch&quot;" in html


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("act", ["add", "delete", "change"])
def test_stock_form_writes_nothing(admin_client: Client, name: str, act: str) -> None:
    """History is the engine's; superusers too go through the acts."""
    run = driven("tests.admin_ask")
    pk = {
        "run": run.pk,
        "thread": run.thread_id,
        "wait": Wait.objects.all()[0].pk,
        "graphrevision": run.revision_id,
    }[name]
    address = reverse(
        f"admin:stateknot_{name}_{act}", args=[] if act == "add" else [pk]
    )
    counts = [m.objects.count() for m in (Run, Thread, Wait, GraphRevision, Checkpoint)]
    response = admin_client.post(address, {"status": "completed", "post": "yes"})
    assert response.status_code in (302, 403, 405)
    run.refresh_from_db()
    assert run.status == "interrupted"
    assert counts == [
        m.objects.count() for m in (Run, Thread, Wait, GraphRevision, Checkpoint)
    ]


@pytest.mark.parametrize("name", LISTS)
def test_list_without_permission_is_refused(name: str) -> None:
    assert client_of("nobody").get(list_url(name)).status_code == 403


@pytest.mark.parametrize("name", LISTS)
def test_list_has_nothing_inline(admin_client: Client, name: str) -> None:
    html = admin_client.get(list_url(name)).content.decode()
    assert "<style" not in html
    assert "<script>" not in html
