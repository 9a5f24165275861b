"""Lists and resources over HTTP: threads, questions, revisions, sparse states."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from stateknot import registry
from stateknot.models import JournalEvent, Run, Wait
from stateknot.services import start_run
from tests.interfaces.samples import (
    ALL,
    TOKEN,
    client_with,
    drive,
    order_graph,
    send,
    start_order,
    thread_path,
)

pytestmark = pytest.mark.django_db
STATE = {"order_id": 7}


def keys(client: Client, path: str) -> list[str]:
    answer = send(client, "GET", path)
    assert answer.status_code == 200, answer.content
    return [row["thread_id"] for row in answer.json()["results"]]


def test_threads_come_newest_first_with_their_current_run() -> None:
    runs = [start_order(f"t{n}", driven=False) for n in range(3)]
    client = client_with("view_run")
    page = send(client, "GET", "threads?limit=2").json()
    found = [row["thread_id"] for row in page["results"]]
    rest = client.get(page["next"]).json()
    found += [row["thread_id"] for row in rest["results"]]
    assert (found, rest["next"]) == (["t2", "t1", "t0"], None)
    assert page["results"][0]["run"]["id"] == str(runs[2].id)


@pytest.mark.parametrize("kind", ["threads", "runs"])
def test_list_is_filtered_by_each_parameter(kind: str) -> None:
    start_run("sample.loop", {}, thread_id="loop")
    north = {"shop": "north", "count": 7, "a__b": True, "2": "two"}
    start_run("sample.order", STATE, thread_id="north", metadata=north)
    start_order("failed", broken=True)
    client = client_with("view_run")
    for query, expected in (
        ("graph=sample.loop", ["loop"]),
        ("status=failed", ["failed"]),
        ("since=2000-01-01T00:00:00Z", ["failed", "north", "loop"]),
        ("since=2100-01-01T00:00:00Z", []),
        ("metadata=shop:north", ["north"]),
        ("metadata=shop:north&metadata=count:7", ["north"]),
        ("metadata=shop:north&metadata=count:8", []),
        ("metadata=a__b:true", ["north"]),
        ("metadata=shop:", []),
        ("metadata=none:1", []),
    ):
        assert keys(client, f"{kind}?{query}") == expected, query


@pytest.mark.parametrize(
    "query",
    [
        *("since=yesterday", "since=2026-01-01T00:00:00", "metadata=shop"),
        *("metadata=:x", "metadata=%00:1", "status=done", "thread=x"),
    ],
)
@pytest.mark.parametrize("kind", ["threads", "runs"])
def test_list_with_an_unfit_parameter_is_refused(kind: str, query: str) -> None:
    answer = send(client_with("view_run"), "GET", f"{kind}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")


def test_runs_are_filtered_by_their_root() -> None:
    run = start_order("t")
    start_order("other")
    answer = send(client_with("view_run"), "GET", f"runs?root_run_id={run.id}")
    [found] = answer.json()["results"]
    assert (found["root_run_id"], found["parent_run_id"]) == (str(run.id), None)


def test_state_is_shown_in_part() -> None:
    """Of the thread, a checkpoint and the history; secrets stay masked."""
    run = start_order("t", token=TOKEN)
    client = client_with("view_run")
    for path in ("threads/t", f"threads/t/checkpoints/{run.head_id}"):
        part = send(client, "GET", f"{path}?fields=checks,token").json()
        whole = send(client, "GET", path).json()
        state = {"checks": ["stock", "approve", "ship"], "token": "********"}
        assert part == whole | {"state": state}
    listed = send(client, "GET", "threads/t/checkpoints?fields=order_id").json()
    assert [c["state"] for c in listed["results"]] == [{"order_id": 7}] * 4


@pytest.mark.parametrize("path", ["threads/t", "threads/t/checkpoints"])
def test_field_that_no_state_has_is_refused(path: str) -> None:
    start_order("t")
    answer = send(client_with("view_run"), "GET", f"{path}?fields=cheques")
    assert answer.status_code == 400
    assert "'cheques'" in answer.json()["detail"]


def test_revisions_are_listed_and_read_with_their_definition() -> None:
    start_order("t", driven=False)
    client = client_with("view_graphrevision")
    [listed] = send(client, "GET", "graphs/sample.order/revisions").json()["results"]
    assert listed == {
        "graph": "sample.order",
        "version": "1.2.0",
        "digest": order_graph.digest,
        "is_registered": True,
        "state": "active",
    }
    path = f"graphs/sample.order/revisions/{order_graph.digest}"
    detail = send(client, "GET", path).json()
    assert detail.items() >= listed.items()
    assert detail["definition"] == order_graph.definition.to_dict()
    assert {node["id"] for node in detail["topology"]["nodes"]} >= {"stock", "ship"}


@pytest.mark.parametrize("is_stored", [True, False])
def test_revision_known_to_one_side_only_is_told(
    monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    """Of code that is gone the database knows the definition, and the other way."""
    if is_stored:
        start_order("t", driven=False)
        monkeypatch.delitem(registry._graphs, "sample.order")
    path = f"graphs/sample.order/revisions/{order_graph.digest}"
    found = send(client_with("view_graphrevision"), "GET", path).json()
    assert found["is_registered"] is not is_stored
    assert (found["state"] == "active") is is_stored
    assert (found["topology"] is None) is is_stored
    assert found["definition"] == order_graph.definition.to_dict()


@pytest.mark.parametrize(
    "path", ["none/revisions", "sample.order/revisions/x", "%00/revisions/%00"]
)
def test_unknown_revision_is_not_found(path: str) -> None:
    answer = send(client_with("view_graphrevision"), "GET", f"graphs/{path}")
    assert answer.status_code == 404


def test_questions_are_listed_oldest_first_until_answered() -> None:
    start_order("t0", questions=1)
    start_order("t1", questions=2)
    client = client_with(*ALL)
    page = send(client, "GET", "questions?limit=2").json()
    assert [q["key"] for q in page["results"]] == ["q0", "q0"]
    [last] = client.get(page["next"]).json()["results"]
    assert (last["thread_id"], last["key"], last["status"]) == ("t1", "q1", "open")
    assert last["payload"] == {"order": 7, "key": "q1"}
    assert last["answer_schema"]["required"] == ["approved"]
    assert send(client, "GET", f"questions/{last['id']}").json() == last
    assert keys(client, "questions?thread_id=t0") == ["t0"]
    assert keys(client, "questions?graph=sample.loop") == []
    assert keys(client, "questions?status=answered") == []


def test_question_is_answered_by_its_id() -> None:
    run = start_order("t", questions=2)
    client = client_with(*ALL)
    for wait in Wait.objects.order_by("position"):
        path = f"questions/{wait.id}/answer"
        answer = send(client, "POST", path, {"value": {"approved": True}})
        assert (answer.status_code, answer.json()["id"]) == (202, str(run.id))
    assert drive(run.id).status == "completed"
    again = send(client, "POST", path, {"value": {"approved": False}})
    assert (again.status_code, again.json()["code"]) == (409, "run.already_answered")
    told = send(client, "GET", f"questions/{wait.id}").json()
    assert told["answered_by"] == f"user-{len(ALL)}"
    assert "answer" not in told


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"value": {"approved": "?"}}, 422, "run.answer_invalid"),
        ({}, 400, "request.invalid"),
        ({"value": 1, "x": 2}, 400, "request.invalid"),
    ],
)
def test_answer_that_does_not_fit_is_refused(body: Any, status: int, code: str) -> None:
    start_order("t", questions=1)
    path = f"questions/{Wait.objects.get().id}/answer"
    answer = send(client_with("answer_wait"), "POST", path, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Wait.objects.get().status == "open"


def test_fork_begins_a_thread_that_waits_to_be_resumed() -> None:
    run = start_order("t", questions=1)
    client = client_with(*ALL)
    answer = send(client, "POST", "threads/t/fork", {"thread_id": "a/b"})
    assert answer.status_code == 201
    assert answer.headers["Location"].endswith("/threads/a/b")
    forked = answer.json()
    assert (forked["thread_id"], forked["run"]["status"]) == ("a/b", "interrupted")
    assert forked["run"]["id"] != str(run.id)
    assert len(keys(client, "questions")) == 2
    row = JournalEvent.objects.filter(run_id=forked["run"]["id"]).first()
    assert row is not None
    assert row.actor == f"user-{len(ALL)}"


def test_fork_from_an_older_checkpoint_stands_there() -> None:
    start_order("t")
    client = client_with(*ALL)
    history = send(client, "GET", "threads/t/checkpoints").json()["results"]
    oldest = history[-1]["checkpoint_id"]
    made = send(client, "POST", "threads/t/fork", {"checkpoint_id": oldest}).json()
    copy = send(client, "GET", thread_path(made["thread_id"])).json()
    assert (copy["state"]["checks"], copy["next_nodes"]) == ([], ["stock"])
    for wrong in ("x", str(Run.objects.all()[0].id)):
        answer = send(client, "POST", "threads/t/fork", {"checkpoint_id": wrong})
        assert answer.status_code == 404


def test_failed_node_is_marked_as_done() -> None:
    """The run goes on behind it, with the update as its result."""
    run = start_order("t", broken=True)
    client = client_with(*ALL)
    body = {"node": "stock", "update": {"checks": ["by hand"]}}
    path = "threads/t/done"
    assert send(client, "POST", path, body).status_code == 428
    stale = send(client, "POST", path, body, If_Match=f'"{run.thread_id}"')
    assert (stale.status_code, stale.json()["code"]) == (412, "checkpoint.stale")
    done = send(client, "POST", path, body, If_Match=f'"{run.head_id}"')
    assert done.status_code == 200
    assert done.headers["ETag"] == f'"{done.json()["checkpoint_id"]}"'
    assert send(client, "POST", "threads/t/resume", {}).status_code == 202
    assert drive(run.id).status == "completed"
    state = send(client, "GET", "threads/t").json()["state"]
    assert state["checks"] == ["by hand", "approve", "ship"]
