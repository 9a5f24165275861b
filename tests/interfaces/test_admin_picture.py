"""The graph on the run page: how far each node is, by picture and by list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from stateknot.registry import _graphs
from stateknot.selectors.run_page import find_standpoint
from stateknot.selectors.run_progress import list_progress
from stateknot.services import start_run, update_state
from tests.interfaces.admin_samples import Parcel, driven, url_of

if TYPE_CHECKING:
    from django.test import Client

    from stateknot.models import Run

pytestmark = pytest.mark.django_db


def states_of(run: Run) -> dict[str, str]:
    progress = list_progress(run, find_standpoint(run))
    return {node: at.state for node, at in progress.items()}


def test_failed_node_is_told_from_what_was_not_reached(admin_client: Client) -> None:
    """AD-07: where it died is seen at once."""
    run = driven()
    picture = admin_client.get(url_of(run)).context["picture"]
    assert [(item.node.label, item.node.note) for item in picture.nodes] == [
        ("fetch", "failed · 1 attempt"),
        ("ship", "not reached"),
    ]
    assert "sk-node-failed" in picture.svg
    assert picture.summary == "2 nodes: 1 failed, 1 not reached."


def test_completed_run_is_done_everywhere() -> None:
    assert states_of(driven(address="x")) == {"fetch": "done", "ship": "done"}


def test_node_that_asks_is_waiting() -> None:
    assert states_of(driven("tests.admin_ask")) == {"approve": "waiting"}


def test_node_that_is_due_is_pending_until_a_worker_has_it() -> None:
    run = start_run("tests.admin", Parcel(), thread_id="t")
    assert states_of(run) == {"fetch": "pending"}
    run.status = "running"
    assert states_of(run) == {"fetch": "running"}


def test_picture_costs_one_query_however_long_the_run() -> None:
    run = driven()
    head = find_standpoint(run)
    with CaptureQueriesContext(connection) as few:
        list_progress(run, head)
    for number in range(3):
        update_state("t", {"weight": number})
    with CaptureQueriesContext(connection) as many:
        list_progress(run, head)
    assert len(few) == len(many) == 1


def test_graph_is_drawn_without_its_code(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = driven()
    monkeypatch.delitem(_graphs, "tests.admin")
    html = admin_client.get(url_of(run)).content.decode()
    assert '<svg class="sk-picture"' in html
    assert "failed · 1 attempt" in html


def test_listed_node_leads_to_its_attempts(admin_client: Client) -> None:
    run = driven(address="x")
    html = admin_client.get(url_of(run)).content.decode()
    assert 'href="?node=ship#sk-attempts"' in html
    rows = admin_client.get(f"{url_of(run)}?node=ship").context["attempts"].rows
    assert [row.node_id for row in rows] == ["ship"]
