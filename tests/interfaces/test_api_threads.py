"""Threads over HTTP: read, history, resume, retry, edit."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import registry
from stateknot.models import JournalEvent, Wait
from stateknot.services import start_run
from tests.interfaces.samples import (
    ALL,
    TOKEN,
    client_with,
    drive,
    send,
    start_order,
    thread_path,
)

pytestmark = pytest.mark.django_db
YES = {"value": {"approved": True}}


def ids_of(thread: dict[str, Any]) -> list[str]:
    return [question["id"] for question in thread["questions"]]


def test_thread_shows_state_questions_with_its_etag() -> None:
    run = start_order("t", questions=1, token=TOKEN)
    answer = send(client_with("view_run"), "GET", "threads/t")
    thread = answer.json()
    assert answer.headers["ETag"] == f'"{run.head_id}"'
    assert thread["state"]["checks"] == ["stock"]
    assert thread["next_nodes"] == ["approve"]
    assert thread["run"]["status"] == "interrupted"
    [question] = thread["questions"]
    assert question["payload"] == {"order": 7, "key": "q0"}
    assert question["answer_schema"]["required"] == ["approved"]


def test_secret_is_masked_wherever_a_state_goes_out() -> None:
    run = start_order("t", questions=1, token=TOKEN)
    client = client_with("view_run")
    for path in (
        "threads/t",
        "threads/t/checkpoints",
        f"threads/t/checkpoints/{run.head_id}",
        f"runs/{run.id}",
        "runs",
    ):
        text = send(client, "GET", path).content.decode()
        assert TOKEN not in text
        assert ("********" in text) == path.startswith("threads")


def test_state_without_its_graph_here_is_masked_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the graph's code knows which fields are secret."""
    start_order("t", token=TOKEN)
    monkeypatch.delitem(registry._graphs, "sample.order")
    thread = send(client_with("view_run"), "GET", "threads/t").json()
    assert set(thread["state"].values()) == {"********"}
    assert "not in this process" in thread["state_error"]


@pytest.mark.parametrize(
    "thread_id",
    ["a/b", "ä ö?#%2F%", "line\nbreak", "..", "a/resume/b", "x" * 255, "'\"<>"],
)
def test_thread_with_any_characters_is_addressed(thread_id: str) -> None:
    run = start_order(thread_id, broken=True)
    client = client_with(*ALL)
    path = thread_path(thread_id)
    assert send(client, "GET", path).json()["thread_id"] == thread_id
    assert len(send(client, "GET", f"{path}/checkpoints").json()["results"]) == 2
    retried = send(client, "POST", f"{path}/retry", {})
    assert retried.json()["id"] == str(run.id)


def test_unknown_thread_is_not_found() -> None:
    client = client_with(*ALL)
    for method, path, body in (
        ("GET", "threads/none", None),
        ("GET", "threads/none/checkpoints", None),
        ("POST", "threads/none/resume", {}),
        ("POST", "threads/none/retry", {}),
        ("PATCH", "threads/none/state", {"update": {}}),
    ):
        answer = send(client, method, path, body)
        assert (answer.status_code, answer.json()["code"]) == (404, "run.not_found")


def test_history_comes_in_pages_newest_first() -> None:
    start_order("t")
    client = client_with("view_run")
    whole = send(client, "GET", "threads/t/checkpoints").json()
    assert [c["step"] for c in whole["results"]] == [3, 2, 1, 0]
    page = send(client, "GET", "threads/t/checkpoints?limit=3").json()
    assert page["results"] == whole["results"][:3]
    rest = client.get(page["next"]).json()
    assert (rest["results"], rest["next"]) == (whole["results"][3:], None)


def test_history_before_a_foreign_checkpoint_is_not_found() -> None:
    other = start_order("other")
    start_order("t")
    client = client_with("view_run")
    for path in (f"checkpoints?before={other.head_id}", f"checkpoints/{other.head_id}"):
        assert send(client, "GET", f"threads/t/{path}").status_code == 404
    answer = send(client, "GET", "threads/t/checkpoints?before=x")
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")


def test_checkpoint_shows_the_state_of_its_boundary() -> None:
    start_order("t")
    client = client_with("view_run")
    history = send(client, "GET", "threads/t/checkpoints").json()["results"]
    first = history[-1]
    found = send(client, "GET", f"threads/t/checkpoints/{first['checkpoint_id']}")
    assert found.json() == first
    assert (first["source"], first["state"]["checks"]) == ("input", [])


def test_answer_to_the_only_question_needs_no_id() -> None:
    run = start_order("t", questions=1)
    answer = send(client_with("answer_wait"), "POST", "threads/t/resume", YES)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert drive(run.id).status == "completed"
    assert Wait.objects.get().answered_by == "user-1"


def test_answer_without_id_is_refused_while_several_are_open() -> None:
    """The caller may have seen another question than the deciding one."""
    start_order("t", questions=2)
    client = client_with(*ALL)
    ids = ids_of(send(client, "GET", "threads/t").json())
    answer = send(client, "POST", "threads/t/resume", YES)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "run.several_questions")
    assert problem["questions"] == ids
    named = send(client, "POST", "threads/t/resume", YES | {"interrupt_id": ids[1]})
    assert named.status_code == 202
    assert ids_of(send(client, "GET", "threads/t").json()) == ids[:1]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"value": {"approved": "perhaps"}}, 422, "run.answer_invalid"),
        ({"value": None}, 422, "run.answer_invalid"),
        (YES | {"interrupt_id": "none"}, 409, "run.cannot_resume"),
        ({"interrupt_id": "q"}, 409, "run.cannot_resume"),
        (YES | {"checkpoint_id": "none"}, 404, "run.not_found"),
        (YES | {"step_limit": 0}, 400, "request.invalid"),
        (YES | {"answer": 1}, 400, "request.invalid"),
    ],
)
def test_resume_that_does_not_fit_changes_nothing(
    body: dict[str, Any], status: int, code: str
) -> None:
    start_order("t", questions=1)
    answer = send(client_with(*ALL), "POST", "threads/t/resume", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Wait.objects.get().status == "open"


def test_resume_of_a_completed_thread_is_a_conflict() -> None:
    start_order("t")
    answer = send(client_with(*ALL), "POST", "threads/t/resume", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "run.cannot_resume")


def test_resume_from_an_older_checkpoint_goes_on_from_there() -> None:
    run = start_order("t")
    client = client_with(*ALL)
    history = send(client, "GET", "threads/t/checkpoints").json()["results"]
    after_stock = next(c for c in history if c["next_nodes"] == ["approve"])
    body = {"checkpoint_id": after_stock["checkpoint_id"]}
    assert send(client, "POST", "threads/t/resume", body).status_code == 202
    assert drive(run.id).status == "completed"
    checks = send(client, "GET", "threads/t").json()["state"]["checks"]
    assert checks == ["stock", "approve", "ship"]


def test_failed_run_is_edited_then_retried_to_its_end() -> None:
    run = start_order("t", broken=True)
    client = client_with(*ALL)
    etag = send(client, "GET", "threads/t").headers["ETag"]
    edit = {"update": {"broken": False}}
    edited = send(client, "PATCH", "threads/t/state", edit, If_Match=etag)
    assert edited.status_code == 200
    assert edited.json()["parent_checkpoint_id"] == etag.strip('"')
    assert edited.headers["ETag"] == f'"{edited.json()["checkpoint_id"]}"'
    retried = send(client, "POST", "threads/t/retry", {})
    assert (retried.status_code, retried.json()["id"]) == (202, str(run.id))
    assert drive(run.id).status == "completed"
    actors = JournalEvent.objects.filter(run=run).values_list("actor", flat=True)
    assert list(actors).count(f"user-{len(ALL)}") == 2


def test_retry_raises_the_limit_of_supersteps() -> None:
    run = start_run("sample.loop", {"until": 8}, thread_id="l")
    assert drive(run.id).error_code == "runtime.graph.superstep_limit_reached"
    answer = send(
        client_with("retry_run"), "POST", "threads/l/retry", {"step_limit": 20}
    )
    assert answer.json()["step_limit"] == 20
    assert drive(run.id).status == "completed"


def test_edit_without_if_match_is_refused() -> None:
    start_order("t")
    answer = send(client_with("edit_state"), "PATCH", "threads/t/state", {"update": {}})
    assert answer.status_code == 428
    assert answer.json()["code"] == "request.precondition_required"


def test_edit_made_for_an_older_checkpoint_is_refused() -> None:
    run = start_order("t", broken=True)
    client = client_with("edit_state", "view_run")
    stale = send(client, "GET", "threads/t").headers["ETag"]
    edit = {"update": {"order_id": 8}}
    assert (
        send(client, "PATCH", "threads/t/state", edit, If_Match=stale).status_code
        == 200
    )
    again = send(client, "PATCH", "threads/t/state", edit, If_Match=stale)
    problem = again.json()
    assert (again.status_code, problem["code"]) == (412, "checkpoint.stale")
    assert (problem["expected"], problem["found"] != problem["expected"]) == (
        str(run.head_id),
        True,
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"update": {"order_id": "x"}}, 422, "state.invalid"),
        ({"update": {"nothing": 1}}, 422, "state.invalid"),
        ({"update": {"checks": ["\0"]}}, 422, "state.unserialisable"),
        ({"update": {"token": "********"}}, 422, "state.invalid"),
        ({"update": {}, "as_node": "nowhere"}, 400, "graph.invalid"),
        ({"update": []}, 400, "request.invalid"),
        ({"update": {}, "as": "stock"}, 400, "request.invalid"),
    ],
)
def test_edit_that_does_not_fit_changes_nothing(
    body: dict[str, Any], status: int, code: str
) -> None:
    run = start_order("t", broken=True)
    client = client_with("edit_state")
    answer = send(client, "PATCH", "threads/t/state", body, If_Match="*")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert drive(run.id).head_id == run.head_id


def test_edit_as_the_failed_node_marks_it_done() -> None:
    run = start_order("t", broken=True)
    client = client_with(*ALL)
    edit = {"update": {"checks": ["by hand"]}, "as_node": "stock"}
    send(client, "PATCH", "threads/t/state", edit, If_Match="*")
    send(client, "POST", "threads/t/retry", {})
    assert drive(run.id).status == "completed"
    checks = send(client, "GET", "threads/t").json()["state"]["checks"]
    assert checks == ["by hand", "approve", "ship"]


@pytest.mark.parametrize("header", ["abc", "", "W/"])
def test_if_match_without_a_tag_is_refused(header: str) -> None:
    start_order("t")
    client = client_with("edit_state")
    answer = send(client, "PATCH", "threads/t/state", {"update": {}}, If_Match=header)
    assert (answer.status_code, answer.json()["code"]) == (400, "request.parse_error")


def test_answer_to_no_question_needs_the_permission_to_resume() -> None:
    """It would let a failed run go on, which who may only answer may not."""
    start_order("t", broken=True)
    answer = send(client_with("answer_wait"), "POST", "threads/t/resume", YES)
    assert answer.status_code == 403
    assert "stateknot.resume_run" in answer.json()["detail"]
