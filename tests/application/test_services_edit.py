"""Editing and forking threads: checked, journalled, refused when stale."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import (
    CheckpointError,
    MissingNodeError,
    ResumeError,
    StaleCheckpointError,
    StateError,
    ThreadBusyError,
)
from stateknot.models import Checkpoint, Run, Thread
from stateknot.runtime.holders import holder_name
from stateknot.selectors import get_run, get_state, get_state_history, get_timeline
from stateknot.services import (
    bulk_update_state,
    fork_thread,
    resume_run,
    retry_run,
    start_run,
    update_state,
)
from stateknot.storage import DjangoCheckpointer
from tests.application.desk import ASK, BREAK, LINE, queued, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def start(graph_id: str, thread_id: str = "t", **state: Any) -> Run:
    run = start_run(graph_id, state, thread_id=thread_id)
    work()
    return get_run(run.id)


def head(thread_id: str = "t") -> Any:
    snapshot = get_state(thread_id)
    assert snapshot is not None
    return snapshot


def test_update_goes_through_the_reducers() -> None:
    start(BREAK, is_broken=True)
    row = update_state("t", {"log": ["by hand"], "total": 2})
    assert (str(row.id), row.source) == (head().config["checkpoint_id"], "update")
    assert (head().values.log, head().values.total) == (["before", "by hand"], 2)


def test_update_keeps_what_is_due() -> None:
    start(ASK)
    update_state("t", {"total": 2})
    assert head().next_nodes == ["ask"]
    assert len(head().pending_interrupts) == 1
    resume_run("t", 5)
    work()
    assert head().values.total == 7


def test_update_is_journalled_with_its_actor() -> None:
    run = start(BREAK, is_broken=True)
    update_state("t", {"is_broken": False}, actor="ada")
    row = get_timeline(run.id)[-1]
    assert (row.actor, row.events[0].kind) == ("ada", "state.edited")
    assert row.events[0].data["fields"] == ["is_broken"]


def test_update_as_the_failed_node_marks_it_done() -> None:
    start(BREAK, is_broken=True)
    update_state("t", {"log": ["by hand"]}, as_node="work")
    assert head().next_nodes == []
    assert head().metadata["failed_node"] is None


def test_update_on_an_expected_checkpoint_is_taken() -> None:
    start(BREAK, is_broken=True)
    expected = head().config["checkpoint_id"]
    row = update_state("t", {"total": 1}, expected_checkpoint_id=expected)
    assert str(row.parent_id) == expected


def test_update_on_a_stale_checkpoint_is_refused() -> None:
    run = start(BREAK, is_broken=True)
    stale = head().config["checkpoint_id"]
    update_state("t", {"total": 1})
    before = (get_run(run.id).head_id, get_timeline(run.id))
    with pytest.raises(StaleCheckpointError) as raised:
        update_state("t", {"total": 1}, expected_checkpoint_id=stale)
    assert (raised.value.expected, raised.value.found) == (stale, str(before[0]))
    assert (get_run(run.id).head_id, get_timeline(run.id)) == before


@pytest.mark.parametrize(
    ("update", "as_node", "error"),
    [
        ({"total": "many"}, None, StateError),
        ({"nothing": 1}, None, StateError),
        ({"total": 1}, "nobody", MissingNodeError),
    ],
)
def test_update_that_does_not_fit_changes_nothing(
    update: Any, as_node: str | None, error: type[Exception]
) -> None:
    start(BREAK, is_broken=True)
    before = Checkpoint.objects.count()
    with pytest.raises(error):
        update_state("t", update, as_node=as_node)
    assert Checkpoint.objects.count() == before


def test_update_while_the_run_is_driven_is_refused() -> None:
    run = start_run(LINE, {}, thread_id="t")
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), holder_name("x")) is not None
    with pytest.raises(ThreadBusyError):
        update_state("t", {"total": 1})


def test_update_of_an_unknown_thread_is_refused() -> None:
    with pytest.raises(CheckpointError, match="'nobody'"):
        update_state("nobody", {"total": 1})


def test_bulk_update_is_all_or_none() -> None:
    start(BREAK, is_broken=True)
    before = head().config
    with pytest.raises(StateError):
        bulk_update_state("t", [{"total": 1}, {"total": "many"}])
    assert head().config == before
    row = bulk_update_state("t", [{"total": 1}, ({"total": 2}, "work")])
    assert str(row.id) == head().config["checkpoint_id"]
    assert (head().values.total, head().next_nodes) == (3, [])


def test_bulk_update_of_nothing_is_refused() -> None:
    start(LINE)
    with pytest.raises(CheckpointError, match="at least one"):
        bulk_update_state("t", [])


def test_fork_of_the_newest_waits_to_be_resumed() -> None:
    start(ASK)
    thread = fork_thread("t", "copy", actor="ada")
    assert (thread.key, thread.current_run.status) == ("copy", "interrupted")
    assert queued() == []
    resume_run("copy", 5)
    work()
    assert head("copy").values.log == ["ask=5", "after"]
    assert head("t").values.log == []
    assert get_timeline(thread.current_run.id)[0].actor == "ada"


def test_fork_of_an_older_checkpoint_begins_there() -> None:
    start(LINE)
    older = get_state_history("t")[1]
    fork_thread("t", "copy", checkpoint_id=older.config["checkpoint_id"])
    assert head("copy").next_nodes == ["third"]
    retry_run("copy")
    work()
    assert head("copy").values.log == ["first", "second", "third"]


def test_fork_without_a_target_makes_a_thread_id() -> None:
    start(LINE)
    thread = fork_thread("t")
    assert thread.key != "t"
    assert Thread.objects.count() == 2


def test_fork_of_a_fork_stays_apart() -> None:
    start(ASK)
    fork_thread("t", "second")
    fork_thread("second", "third")
    for number, thread_id in enumerate(["third", "second", "t"]):
        resume_run(thread_id, number)
        work()
    totals = [head(thread_id).values.total for thread_id in ("t", "second", "third")]
    assert totals == [2, 1, 0]


def test_fork_onto_a_held_thread_is_refused() -> None:
    start(ASK)
    start(ASK, "held")
    with pytest.raises(ThreadBusyError):
        fork_thread("t", "held")


@pytest.mark.parametrize(
    ("source", "checkpoint_id"), [("nobody", None), ("t", "nonsense")]
)
def test_fork_of_something_unknown_is_refused(
    source: str, checkpoint_id: str | None
) -> None:
    start(LINE)
    with pytest.raises(CheckpointError):
        fork_thread(source, "copy", checkpoint_id=checkpoint_id)
    assert not Thread.objects.filter(key="copy").exists()


def test_forked_completed_thread_has_nothing_to_resume() -> None:
    start(LINE)
    fork_thread("t", "copy")
    with pytest.raises(ResumeError, match="no pending"):
        resume_run("copy")


def test_edit_of_a_branch_that_was_not_driven_yet_is_its_first_record() -> None:
    """A branch that an edit begins holds the whole state."""
    start(ASK, total=1)
    asked_at = head().config["checkpoint_id"]
    resume_run("t", 5)
    work()
    resume_run("t", checkpoint_id=asked_at)
    row = update_state("t", {"total": 10})
    assert row.lineage == row.sequence
    resume_run("t", 3)
    work()
    assert (head().values.total, head().values.log) == (14, ["ask=3", "after"])
