"""The run page: what it says, what it hides, what it offers."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from stateknot.admin.json_tree import MOST_VALUES, render_tree
from stateknot.models import Run
from stateknot.registry import _graphs
from stateknot.selectors.run_page import WINDOW
from stateknot.services import fork_thread, start_run, update_state
from tests.interfaces.admin_samples import (
    SECRET,
    Parcel,
    client_of,
    drive_on,
    driven,
    url_of,
)

pytestmark = pytest.mark.django_db


def page_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_page_of_failed_run_says_what_happened(admin_client: Client) -> None:
    """AD-07: node, superstep, type, message, attempts and traceback."""
    html = page_of(admin_client, url_of(driven()))
    assert "Failed at <strong>fetch</strong> in superstep 1" in html
    assert "ConnectionError: no address. 1 attempt." in html
    assert "raise ConnectionError" in html
    assert "Retry at fetch" in html


def test_page_shows_text_readably(admin_client: Client) -> None:
    """AD-02."""
    assert "中国 é" in page_of(admin_client, url_of(driven()))


@pytest.mark.parametrize("act", ["change", "edit"])
def test_page_masks_secrets(admin_client: Client, act: str) -> None:
    html = page_of(admin_client, url_of(driven(), act))
    assert SECRET not in html
    assert "********" in html


def test_page_without_the_graphs_code_shows_no_value(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody here knows which fields are secret."""
    run = driven(label="visible")
    monkeypatch.delitem(_graphs, "tests.admin")
    html = page_of(admin_client, url_of(run))
    assert "visible" not in html
    assert SECRET not in html
    assert "Edit state" not in html


def test_page_keeps_the_failed_attempt_beside_the_good_one(
    admin_client: Client,
) -> None:
    """AD-09: a retry does not erase what went wrong."""
    run = driven()
    update_state("t", {"address": "here"})
    admin_client.post(url_of(run, "retry"), _shown(admin_client, url_of(run)))
    drive_on(run)
    html = page_of(admin_client, url_of(run))
    assert "Completed" in html
    assert "sk-attempt-failed" in html
    assert "sk-attempt-succeeded" in html


def _shown(client: Client, address: str) -> dict[str, str]:
    return {"shown": client.get(address).context["token"]}


def test_page_links_each_boundary_to_its_state(admin_client: Client) -> None:
    run = driven(address="before")
    update_state("t", {"label": "edited by hand"})
    boundaries = admin_client.get(url_of(run)).context["boundaries"].rows
    assert [b.source for b in boundaries] == ["input", "loop", "loop", "update"]
    html = page_of(admin_client, f"{url_of(run)}?at={boundaries[1].id}")
    assert "State at superstep 1" in html
    assert "edited by hand" not in html


def test_page_of_unknown_checkpoint_says_so(admin_client: Client) -> None:
    html = page_of(admin_client, f"{url_of(driven())}?at={uuid4()}")
    assert "This checkpoint is not there." in html


def test_timeline_is_a_window_with_a_way_to_the_rest(admin_client: Client) -> None:
    run = driven()
    for number in range(WINDOW + 3):
        update_state("t", {"weight": 10 + number})
    newest = admin_client.get(url_of(run)).context["boundaries"]
    assert len(newest.rows) == WINDOW
    address = f"{url_of(run)}?boundaries_before={newest.earlier}"
    older = admin_client.get(address).context["boundaries"]
    assert [row.sequence for row in older.rows] == list(range(5))
    assert older.earlier is None


def test_timeline_leaves_out_the_boundaries_of_other_runs(
    admin_client: Client,
) -> None:
    first = driven(address="a")
    second = drive_on(start_run("tests.admin", Parcel(address="b"), thread_id="t"))
    update_state("t", {"weight": 2})
    for run, count in ((first, 3), (second, 4)):
        rows = admin_client.get(url_of(run)).context["boundaries"].rows
        assert len(rows) == count


def test_page_of_earlier_run_leads_to_the_newer_one(admin_client: Client) -> None:
    old = driven()
    new = start_run("tests.admin", Parcel(), thread_id="t")
    html = page_of(admin_client, url_of(old))
    assert url_of(new) in html
    assert "Retry at" not in html


def test_page_of_fork_offers_to_resume(admin_client: Client) -> None:
    driven()
    fork_thread("t", "copy")
    run = Run.objects.get(thread__key="copy")
    assert url_of(run, "resume") in page_of(admin_client, url_of(run))


def test_page_of_viewer_has_no_act(db: None) -> None:
    """AD-04: buttons of what one may not do are absent."""
    viewer = client_of("viewer", "view_run")
    html = page_of(viewer, url_of(driven()))
    assert "sk-sentence" in html
    assert '<button type="submit" class="button' not in html
    assert "Edit state" not in html


def test_page_without_permission_is_refused(db: None) -> None:
    assert client_of("nobody").get(url_of(driven())).status_code == 403


@pytest.mark.parametrize("name", [uuid4(), "not-an-id"])
def test_page_of_unknown_run_is_not_found(admin_client: Client, name: object) -> None:
    assert admin_client.get(f"/admin/stateknot/run/{name}/change/").status_code == 404


def test_page_has_nothing_inline(admin_client: Client) -> None:
    """The strict policy would drop it."""
    html = page_of(admin_client, url_of(driven("tests.admin_ask")))
    assert "style=" not in html
    assert "<style" not in html
    assert "<script>" not in html
    assert " onclick" not in html


def test_live_address_answers_304_until_something_happens(
    admin_client: Client,
) -> None:
    run = start_run("tests.admin", Parcel(), thread_id="t")
    seen = admin_client.get(url_of(run)).context["seen"]
    again = {"if-none-match": seen}
    assert admin_client.get(url_of(run, "live"), headers=again).status_code == 304
    drive_on(run)
    changed = admin_client.get(url_of(run, "live"), headers=again)
    assert changed.json() == {"status": "failed", "moving": False}
    assert changed.headers["ETag"] != seen


def test_live_address_notices_an_edit(admin_client: Client) -> None:
    run = driven()
    seen = {"if-none-match": admin_client.get(url_of(run)).context["seen"]}
    update_state("t", {"weight": 2})
    assert admin_client.get(url_of(run, "live"), headers=seen).status_code == 200


def test_live_address_is_for_viewers_only(db: None) -> None:
    assert client_of("nobody").get(url_of(driven(), "live")).status_code == 403


def test_tree_is_bounded() -> None:
    """A large state opens, and what is left out is counted."""
    html = render_tree({"items": list(range(MOST_VALUES + 10))})
    assert html.count("<dt>") < MOST_VALUES + 10
    assert "12 more are not shown" in html


def test_tree_escapes_keys() -> None:
    html = render_tree({"<b>": ["<i>"]})
    assert "<b>" not in html
    assert "<i>" not in html


def test_tree_of_deep_value_ends() -> None:
    value: object = "bottom"
    for _ in range(250):
        value = [value]
    assert "bottom" not in render_tree(value)
