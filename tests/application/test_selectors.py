"""Asking for runs, states and timelines: what is known, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import NotFoundError
from stateknot.selectors import (
    get_run,
    get_state,
    get_state_history,
    get_timeline,
    list_runs,
)
from stateknot.services import resume_run, start_run
from tests.application.desk import ASK, ASK_TWO, BREAK, LINE, Desk, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


@pytest.mark.parametrize(
    "run_id", ["nonsense", "", "0192f3a4-5b6c-7d8e-9f00-112233445566"]
)
def test_unknown_run_is_not_found(run_id: str) -> None:
    with pytest.raises(NotFoundError):
        get_run(run_id)
    with pytest.raises(NotFoundError):
        get_timeline(run_id)


@pytest.mark.parametrize("thread_id", ["nobody", "a\x00b", ""])
def test_unknown_thread_has_no_state(thread_id: str) -> None:
    assert get_state(thread_id) is None
    assert get_state_history(thread_id) == []


def test_state_is_a_value_of_the_graph_model() -> None:
    start_run(LINE, {"total": 3}, thread_id="t")
    snapshot = get_state("t")
    assert snapshot is not None
    assert isinstance(snapshot.values, Desk)
    assert snapshot.values.total == 3


def test_state_of_a_graph_that_is_not_here_is_a_dict(register_only: Any) -> None:
    start_run(LINE, {"total": 3}, thread_id="t")
    register_only()
    snapshot = get_state("t")
    assert snapshot is not None
    assert snapshot.values == {"total": 3, "log": [], "is_broken": False}


def test_state_of_a_named_checkpoint_is_the_one_of_then() -> None:
    start_run(LINE, {}, thread_id="t")
    work()
    third, second = get_state_history("t")[:2]
    assert get_state("t", second.config["checkpoint_id"]) == second
    assert (second.values.log, third.values.log[2:]) == (["first", "second"], ["third"])


def test_history_is_newest_first() -> None:
    start_run(LINE, {}, thread_id="t")
    work()
    history = get_state_history("t")
    assert [s.metadata["step"] for s in history] == [3, 2, 1, 0]
    assert [s.metadata["source"] for s in history] == ["loop"] * 3 + ["input"]
    page = get_state_history("t", limit=1, before=history[1].config["checkpoint_id"])
    assert page == [history[2]]


def test_timeline_goes_on_behind_a_row() -> None:
    run = start_run(LINE, {}, thread_id="t")
    work()
    rows = get_timeline(run.id)
    assert [row.number for row in rows] == list(range(len(rows)))
    assert get_timeline(run.id, after=1) == rows[2:]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["c", "b", "a"]),
        ({"graph_id": LINE}, ["a"]),
        ({"status": "failed"}, ["c"]),
        ({"thread_id": "b"}, ["b"]),
        ({"failed_node": "work"}, ["c"]),
        ({"graph_id": LINE, "status": "failed"}, []),
    ],
)
def test_runs_are_listed_newest_first_by_filter(
    filters: dict[str, str], expected: list[str]
) -> None:
    start_run(LINE, {}, thread_id="a")
    start_run(ASK, {}, thread_id="b")
    start_run(BREAK, {"is_broken": True}, thread_id="c")
    work()
    assert [run.thread.key for run in list_runs(**filters)] == expected


def test_node_that_asks_again_is_still_next(register_only: Any) -> None:
    """IH-08: a second question of one node is a pause, not an end."""
    from stateknot import START, GraphBuilder, Interrupt

    def ask_twice(desk: Desk, ctx: Any) -> Any:
        if "second" in ctx.answers:
            return {"total": ctx.answers["first"] + ctx.answers["second"]}
        return Interrupt({}, key="second" if "first" in ctx.answers else "first")

    builder = GraphBuilder("desk.twice", state=Desk)
    builder.add_node("ask", ask_twice).add_edge(START, "ask")
    register_only(builder.compile())
    run = start_run("desk.twice", {}, thread_id="t")
    work()
    resume_run("t", 1)
    work()
    snapshot = get_state("t")
    assert snapshot is not None
    assert (get_run(run.id).status, snapshot.next_nodes) == ("interrupted", ["ask"])
    assert [question.key for question in snapshot.pending_interrupts] == ["second"]
    resume_run("t", 2)
    work()
    snapshot = get_state("t")
    assert snapshot is not None
    assert (get_run(run.id).status, snapshot.values.total) == ("completed", 3)


def test_questions_of_a_step_are_shown_in_active_order() -> None:
    start_run(ASK_TWO, {}, thread_id="t")
    work()
    snapshot = get_state("t")
    assert snapshot is not None
    assert [q.node for q in snapshot.pending_interrupts] == ["left", "right"]
    assert snapshot.metadata["interrupted_nodes"] == ["left", "right"]
