"""An operator in a real browser: a failure understood, repaired and retried; an answer.

The pages come from a live server under the project's own strict policy; a run is driven
as a worker drives it, by the task that the queue would call. Any console error or
violation of the policy fails the test.

Playwright's blocking interface runs an event loop in this thread, which Django takes
for asynchronous code; DJANGO_ALLOW_ASYNC_UNSAFE says that it is not.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from playwright.sync_api import sync_playwright

from stateknot import START, GraphBuilder
from stateknot.models import Run
from stateknot.registry import register
from stateknot.selectors import get_state
from stateknot.services import start_run, update_state
from tests.interfaces.admin_samples import Parcel, drive_on, driven, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page
    from pytest_django.live_server_helper import LiveServer

PASSWORD = "browser-test"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = [(1280, 900), (390, 844)]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def browser(chromium: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """Return a headless Chromium with a profile of its own."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()
        # Beside a running loop Django opens a connection of its own for this thread.
        connections.close_all()
    _join_request_threads()


def _join_request_threads() -> None:
    """Wait for the server's threads of kept-alive connections to end.

    Each holds a connection to the database, which can only be dropped without them.
    """
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(10)
            assert not thread.is_alive(), thread


def open_admin(browser: Browser, server: LiveServer, **options: Any) -> Page:
    """Log an operator in; returns a page that fails the test on a console error."""
    users = get_user_model().objects
    users.filter(username="ada").delete()
    users.create_superuser("ada", password=PASSWORD)
    page = browser.new_context(base_url=server.url, **options).new_page()
    page.on("pageerror", _fail)
    page.on("console", _check_console)
    page.goto("/admin/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Runs").first.wait_for()
    return page


def _fail(error: Any) -> None:
    raise AssertionError(f"script error: {error}")


def _check_console(message: ConsoleMessage) -> None:
    """Chromium reports a conflict page by its status; the admin has no favicon."""
    is_expected = "409 (Conflict)" in message.text
    is_expected |= message.location["url"].endswith("/favicon.ico")
    if message.type == "error" and not is_expected:
        raise AssertionError(f"console: {message.text} at {message.location}")


def edit_state(page: Page, **fields: Any) -> None:
    """Open the editor from the run page and change fields of the text."""
    page.get_by_role("link", name="Edit state").click()
    box = page.get_by_label("State", exact=True)
    text = json.dumps({**json.loads(box.input_value()), **fields}, indent=2)
    box.fill(text)
    page.get_by_role("button", name="Save").click()


@pytest.mark.parametrize("with_script", [True, False])
def test_operator_repairs_a_failed_run_to_its_end(
    browser: Browser, live_server: LiveServer, with_script: bool
) -> None:
    """Start, failure, edit, retry, completed: the same walk without JavaScript."""
    run = driven()
    page = open_admin(browser, live_server, java_script_enabled=with_script)
    page.get_by_role("link", name="Runs").first.click()
    page.locator("#result_list tbody th a").click()
    assert "Failed at fetch" in page.locator(".sk-sentence").inner_text()
    page.get_by_text("Traceback", exact=True).click()
    assert "raise ConnectionError" in page.locator("#sk-traceback pre").inner_text()
    edit_state(page, address="12 Canal St")
    assert "Edited address." in page.locator(".messagelist").inner_text()
    page.get_by_role("button", name="Retry at fetch").click()
    assert "Retried at fetch." in page.locator(".messagelist").inner_text()
    drive_on(run)
    if with_script:
        # Nobody reloads: the page of a moving run follows it.
        page.locator(".sk-sentence", has_text="Completed").wait_for()
    else:
        page.get_by_role("link", name="Reload").click()
    assert "Completed" in page.locator(".sk-sentence").inner_text()
    assert page.locator("#sk-attempts tbody tr").count() == 3


def test_operator_answers_a_question(browser: Browser, live_server: LiveServer) -> None:
    run = driven("tests.admin_ask")
    page = open_admin(browser, live_server)
    page.goto("/admin/stateknot/wait/")
    page.get_by_role("link", name="approve").first.click()
    page.get_by_label("Approve", exact=True).select_option(label="Yes")
    page.get_by_label("Carrier", exact=True).select_option(label="courier")
    page.get_by_role("button", name="Answer approve flat").click()
    assert "Answered flat" in page.locator(".messagelist").inner_text()
    page.get_by_label("Answer", exact=True).fill('"no, all fine"')
    page.get_by_role("button", name="Answer approve free").click()
    assert drive_on(run).status == "completed"
    snapshot = get_state("t")
    assert snapshot is not None
    assert "'carrier': 'courier'" in snapshot.values.notes[0]
    assert snapshot.values.notes[1] == "no, all fine"


def test_typed_answer_survives_a_change_of_the_run(
    browser: Browser, live_server: LiveServer
) -> None:
    """The page follows the run, but not over what the operator types."""
    run = driven("tests.admin_ask")
    page = open_admin(browser, live_server)
    page.goto(url_of(run))
    page.get_by_label("Approve", exact=True).select_option(label="Yes")
    page.get_by_role("button", name="Answer approve flat").click()
    page.get_by_label("Answer", exact=True).fill('"half typ')
    drive_on(run)
    page.get_by_text("This run has changed.").wait_for()
    assert page.get_by_label("Answer", exact=True).input_value() == '"half typ'


def test_two_people_edit_and_neither_loses(
    browser: Browser, live_server: LiveServer
) -> None:
    """AD-03 as it is seen: the other's change, one's own text, one more click."""
    run = driven()
    page = open_admin(browser, live_server)
    page.goto(url_of(run, "edit"))
    update_state("t", {"weight": 7}, actor="bob")
    box = page.get_by_label("State", exact=True)
    box.fill(box.input_value().replace('"address": ""', '"address": "mine"'))
    page.get_by_role("button", name="Save").click()
    row = page.locator("tr", has_text="weight")
    assert "not changed by you" in row.inner_text()
    page.get_by_role("button", name="Save on top of the newest state").click()
    page.get_by_text("Edited address.").wait_for()
    snapshot = get_state("t")
    assert snapshot is not None
    assert (snapshot.values.weight, snapshot.values.address) == (7, "mine")


@pytest.mark.parametrize("size", SIZES)
def test_page_does_not_scroll_sideways(
    browser: Browser, live_server: LiveServer, size: tuple[int, int]
) -> None:
    """Wide tables scroll in their own frame, on a phone too."""
    start_run("tests.admin", Parcel(label="x" * 300), thread_id="k" * 200)
    runs = [driven(thread_id="f"), driven("tests.admin_ask", thread_id="q")]
    runs.append(Run.objects.get(thread__key="k" * 200))
    viewport: Any = {"width": size[0], "height": size[1]}
    page = open_admin(browser, live_server, viewport=viewport)
    lists = [f"/admin/stateknot/{name}/" for name in ("run", "thread", "wait")]
    edit = url_of(runs[0], "edit")
    for address in [*map(url_of, runs), edit, *lists, "/admin/stateknot/"]:
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], address


def test_picture_follows_the_run_and_keeps_its_zoom(
    browser: Browser, live_server: LiveServer
) -> None:
    run = start_run("tests.admin", Parcel(address="x"), thread_id="t")
    page = open_admin(browser, live_server)
    page.goto(url_of(run))
    assert page.locator(".sk-node-pending", has_text="fetch").count() == 1
    page.get_by_label("Full size").check()
    page.get_by_text("The graph as a list").click()
    drive_on(run)
    page.locator(".sk-node-done", has_text="ship").wait_for()
    assert page.get_by_label("Full size").is_checked()
    assert page.get_by_role("link", name="ship", exact=True).is_visible()


def test_graph_of_a_thousand_nodes_fits_the_page(
    browser: Browser, live_server: LiveServer
) -> None:
    """No wider than its frame at first; whole, or in full size, at a click."""
    builder = GraphBuilder("tests.admin_wide", state=Parcel)
    names = [f"n{number}" for number in range(1_000)]
    for name in names:
        builder.add_node(name, lambda _: {})
    builder.add_edge(START, "n0")
    for place, name in enumerate(names[1:]):
        builder.add_edge(names[place // 3], name)
    run = start_run(register(builder.compile()).graph_id, Parcel(), thread_id="t")
    page = open_admin(browser, live_server)
    page.goto(url_of(run))
    assert page.locator(".sk-picture-list li").count() == 1_000
    picture, frame = page.locator(".sk-picture"), page.locator(".sk-picture-place")
    limits = frame.bounding_box()
    for label in ("Fit to width", "Whole graph"):
        page.get_by_label(label).check()
        box = picture.bounding_box()
        assert box is not None
        assert limits is not None
        assert box["width"] <= limits["width"]
    assert box["height"] <= limits["height"]
    page.get_by_label("Full size").check()
    full = picture.bounding_box()
    assert full is not None
    assert full["width"] >= box["width"]


def test_overview_leads_an_operator_to_the_failed_run(
    browser: Browser, live_server: LiveServer
) -> None:
    """AD-07: from what needs a person to the run in three clicks."""
    driven(thread_id="broken")
    driven(thread_id="fine", address="x")
    page = open_admin(browser, live_server)
    page.get_by_role("link", name="StateKnot", exact=True).click()
    page.get_by_role("link", name="failed, to be repaired").click()
    page.locator("#result_list tbody th a").click()
    assert "Failed at fetch" in page.locator(".sk-sentence").inner_text()


def test_script_is_small() -> None:
    script = Path(__file__).parents[2] / "stateknot/static/stateknot/run.js"
    assert script.stat().st_size < 3_000
