"""Runs over HTTP: start, list, read, journal; graphs."""

from __future__ import annotations

import pytest

from stateknot.models import Run
from tests.interfaces.samples import (
    TOKEN,
    client_with,
    drive,
    order_graph,
    send,
    start_order,
)

pytestmark = pytest.mark.django_db
START = {"graph": "sample.order", "state": {"order_id": 7}}


def test_graphs_lists_registered_revisions() -> None:
    found = send(client_with("view_run"), "GET", "graphs").json()["results"]
    order = next(graph for graph in found if graph["graph"] == "sample.order")
    assert order == {
        "graph": "sample.order",
        "name": "Orders",
        "version": "1.2.0",
        "digest": order_graph.digest,
        "is_newest": True,
        "nodes": ["stock", "approve", "ship"],
    }


def test_start_answers_with_the_pending_run() -> None:
    """Who started it is journalled; nothing ran yet."""
    body = START | {"thread_id": "order-7", "metadata": {"shop": "north"}}
    answer = send(client_with("start_run"), "POST", "runs", body)
    run = answer.json()
    assert answer.status_code == 201
    assert run["status"] == "pending"
    assert run["thread_id"] == "order-7"
    assert run["metadata"] == {"shop": "north"}
    assert run["actor"] == "user-1"
    assert answer.headers["Location"].endswith(f"/stateknot/api/v1/runs/{run['id']}")


def test_start_with_inputs_enters_at_their_nodes() -> None:
    body = START | {"inputs": [{"node": "ship"}]}
    run = send(client_with("start_run"), "POST", "runs", body).json()
    assert drive(run["id"]).status == "completed"
    client = client_with("view_run", "retry_run")
    thread = send(client, "GET", f"threads/{run['thread_id']}").json()
    assert thread["state"]["checks"] == ["ship"]


def test_start_on_a_busy_thread_names_the_run_that_holds_it() -> None:
    """AP-04: the way out is named."""
    run = start_order("busy", driven=False)
    answer = send(
        client_with("start_run"), "POST", "runs", START | {"thread_id": "busy"}
    )
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "thread.busy")
    assert (problem["run_id"], problem["run_status"]) == (str(run.id), "pending")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (START | {"graph": "sample.none"}, 404, "run.not_found"),
        (START | {"version": "9.9.9"}, 404, "run.not_found"),
        (START | {"state": {"order_id": "x"}}, 422, "state.invalid"),
        (START | {"inputs": [{"node": "nowhere"}]}, 400, "graph.invalid"),
        (
            START | {"state": {"order_id": 7, "token": "\0"}},
            422,
            "state.unserialisable",
        ),
        (
            START | {"state": {"order_id": 7, "token": "\ud800"}},
            422,
            "state.unserialisable",
        ),
        (START | {"metadata": {"x": ["\0"]}}, 400, "request.invalid"),
        (START | {"thread_id": "a\0b"}, 400, "request.invalid"),
        (START | {"thread_id": "\ud800"}, 400, "request.invalid"),
        (START | {"thread_id": 7}, 400, "request.invalid"),
        (START | {"priority": 1}, 400, "request.invalid"),
        (START | {"inputs": []}, 400, "request.invalid"),
        ({"graph": "sample.order"}, 400, "request.invalid"),
        ([], 400, "request.invalid"),
        (None, 400, "request.invalid"),
    ],
)
def test_start_that_does_not_fit_stores_nothing(
    body: object, status: int, code: str
) -> None:
    answer = send(client_with("start_run"), "POST", "runs", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Run.objects.exists()


def test_start_with_a_mask_for_a_secret_is_refused() -> None:
    """A state that was read here and sent back would store the mask."""
    body = START | {"state": {"order_id": 7, "token": "********"}}
    answer = send(client_with("start_run"), "POST", "runs", body)
    assert (answer.status_code, answer.json()["path"]) == (422, "token")


def test_runs_come_newest_first_in_pages() -> None:
    """Cursor pages neither repeat nor leave out, while new runs arrive."""
    ids = [str(start_order(f"t{n}", driven=False).id) for n in range(5)]
    client = client_with("view_run")
    page = send(client, "GET", "runs?limit=2").json()
    start_order("late", driven=False)
    seen = [run["id"] for run in page["results"]]
    while page["next"]:
        page = client.get(page["next"]).json()
        seen += [run["id"] for run in page["results"]]
    assert seen == ids[::-1]
    assert client.get(page["previous"]).json()["results"][-1]["id"] == seen[-2]


def test_runs_are_filtered_by_every_parameter_given() -> None:
    start_order("good")
    failed = start_order("bad", broken=True)
    client = client_with("view_run")
    for query in ("status=failed", "thread_id=bad", "failed_node=stock"):
        found = send(client, "GET", f"runs?graph=sample.order&{query}").json()
        assert [run["id"] for run in found["results"]] == [str(failed.id)]
    assert send(client, "GET", "runs?graph=sample.loop").json()["results"] == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("status=done", 400),
        ("grahp=sample.order", 400),
        ("limit=0", 400),
        ("limit=999", 400),
        ("thread_id=%00", 400),
        ("cursor=garbage", 404),
        ("cursor=cD1hYmM=", 404),
    ],
)
def test_runs_with_an_unfit_parameter_are_refused(query: str, status: int) -> None:
    """A filter with a typing error would list everything."""
    answer = send(client_with("view_run"), "GET", f"runs?{query}")
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_run_tells_its_failure_with_the_traceback() -> None:
    run = start_order("bad", broken=True)
    client = client_with("view_run")
    told = send(client, "GET", f"runs/{run.id}").json()
    assert (told["status"], told["failed_node"]) == ("failed", "stock")
    assert told["error"]["message"] == "no such article"
    assert "Traceback" in told["error"]["traceback"]
    listed = send(client, "GET", "runs").json()["results"][0]
    assert "traceback" not in listed["error"]


@pytest.mark.parametrize("run_id", ["x", "0198c5a2-0000-7000-8000-000000000000"])
def test_unknown_run_is_not_found(run_id: str) -> None:
    client = client_with("view_run")
    for path in (f"runs/{run_id}", f"runs/{run_id}/journal"):
        answer = send(client, "GET", path)
        assert (answer.status_code, answer.json()["code"]) == (404, "run.not_found")


def test_journal_is_read_on_from_a_number() -> None:
    run = start_order("t", token=TOKEN)
    client = client_with("view_run")
    whole = send(client, "GET", f"runs/{run.id}/journal")
    rows = whole.json()["results"]
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert rows[0]["events"][0]["kind"] == "run.admitted"
    assert TOKEN not in whole.content.decode()
    page = send(client, "GET", f"runs/{run.id}/journal?after=0&limit=1").json()
    assert page["results"] == rows[1:2]
    assert client.get(page["next"]).json()["results"] == rows[2:3]
    last = f"runs/{run.id}/journal?after={rows[-1]['number']}"
    assert send(client, "GET", last).json() == {"next": None, "results": []}
