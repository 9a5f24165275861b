"""Reading a thread: its newest state, its history, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, ResumeTarget
from stateknot.errors import CheckpointError, NodeFailedError
from tests.runtime.graphs import Asker, Flaky, add_fan, add_line, new_builder

if TYPE_CHECKING:
    from stateknot import CompiledGraph


def line(checkpointer: Any) -> CompiledGraph:
    """Nodes a, b, c in a row; each adds 1."""
    builder = add_line(new_builder(), "a", "b", "c")
    return builder.compile().with_checkpointer(checkpointer)


def ids(graph: CompiledGraph, **query: Any) -> list[str]:
    history = graph.get_state_history("t", **query)
    return [snapshot.config["checkpoint_id"] for snapshot in history]


def test_newest_state_of_a_completed_thread(checkpointer: Any) -> None:
    """Scenario 119: three additions, and nothing is due."""
    graph = line(checkpointer)
    done = graph.run_with_thread("t", {})
    newest = graph.get_state("t")
    assert (newest.values.total, newest.next_nodes, newest.tasks) == (3, [], [])
    assert newest.config == {
        "thread_id": "t",
        "checkpoint_id": done.checkpoint_id,
        "namespace": [],
    }


def test_history_is_newest_first(checkpointer: Any) -> None:
    """Scenario 119, with the input record of decision 8 as its root."""
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    history = graph.get_state_history("t")
    assert [snapshot.values.total for snapshot in history] == [3, 2, 1, 0]
    assert [snapshot.metadata["step"] for snapshot in history] == [3, 2, 1, 0]
    assert [snapshot.next_nodes for snapshot in history] == [[], ["c"], ["b"], ["a"]]


def test_history_is_chained_to_its_root(checkpointer: Any) -> None:
    """Scenario 119: each names the one before it, and the oldest names none."""
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    history = graph.get_state_history("t")
    parents = [snapshot.parent_config for snapshot in history]
    assert parents == [*(snapshot.config for snapshot in history[1:]), None]


@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_history_limit_keeps_the_newest(limit: int, checkpointer: Any) -> None:
    """Scenario 119."""
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    assert ids(graph, limit=limit) == ids(graph)[:limit]


def test_history_before_a_checkpoint(checkpointer: Any) -> None:
    """The page behind another: it starts at the parent of the one named."""
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    whole = ids(graph)
    assert ids(graph, before=whole[0]) == whole[1:]
    assert ids(graph, before=whole[1], limit=1) == whole[2:3]
    assert ids(graph, before=whole[-1]) == []


def test_history_before_an_unknown_checkpoint_is_empty(checkpointer: Any) -> None:
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    assert ids(graph, before="no-such-id") == []


def test_older_state_is_read_by_its_id(checkpointer: Any) -> None:
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    for expected in graph.get_state_history("t"):
        assert graph.get_state("t", expected.config["checkpoint_id"]) == expected


def test_unknown_thread_has_no_state(checkpointer: Any) -> None:
    """Scenario 119: none, and no error."""
    graph = line(checkpointer)
    assert graph.get_state("nowhere") is None
    assert graph.get_state_history("nowhere") == []


def test_checkpoint_of_another_thread_is_not_found(checkpointer: Any) -> None:
    graph = line(checkpointer)
    other = graph.run_with_thread("other", {}).checkpoint_id
    graph.run_with_thread("t", {})
    assert graph.get_state("t", other) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.get_state("t"),
        lambda graph: graph.get_state_history("t"),
        lambda graph: graph.update_state("t", {}),
        lambda graph: graph.bulk_update_state("t", [{}]),
        lambda graph: graph.fork_state("t", "u"),
    ],
)
def test_without_a_checkpointer_there_is_no_state(call: Any) -> None:
    """Scenario 133: the error says how to get one."""
    graph = add_line(new_builder(), "a").compile()
    with pytest.raises(CheckpointError, match="with_checkpointer"):
        call(graph)


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.update_state("nowhere", {}),
        lambda graph: graph.bulk_update_state("nowhere", [{}]),
        lambda graph: graph.fork_state("nowhere", "u"),
    ],
)
def test_write_to_an_unknown_thread_is_refused(call: Any, checkpointer: Any) -> None:
    """Scenario 133: the error names the thread."""
    with pytest.raises(CheckpointError, match="'nowhere'"):
        call(line(checkpointer))


def test_failure_boundary_says_what_failed(checkpointer: Any) -> None:
    """Decision 6: a reader sees node and error without the journal."""
    builder = add_fan(new_builder(), {"a": Flaky("a")})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    head = graph.get_state("t")
    assert head.config["checkpoint_id"] == failed.value.checkpoint_id
    assert (head.metadata["source"], head.next_nodes) == ("failure", ["a"])
    assert head.metadata["failed_node"] == "a"
    assert "a failed on call 1" in head.metadata["error"]["message"]


def test_paused_thread_is_read_after_a_restart(checkpointer: Any) -> None:
    """IH-14, IH-08: what is due and what was asked comes from the store alone."""
    builder = add_fan(new_builder(), {"a": Asker({"order": 7})})
    graph = builder.compile().with_checkpointer(checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts
    again = add_fan(new_builder(), {"a": Asker()}).compile()
    head = again.with_checkpointer(checkpointer).get_state("t")
    assert (head.next_nodes, head.pending_interrupts) == (["a"], asked)
    assert head.pending_interrupts[0].payload == {"order": 7}


def test_history_shows_a_question_where_it_was_open(checkpointer: Any) -> None:
    """IH-05: an answered question is shown nowhere as open."""
    builder = add_fan(new_builder(), {"a": Asker()})
    graph = builder.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    (first, _) = graph.get_state_history("t")
    assert len(first.pending_interrupts) == 1
    graph.resume("t", Command(resume=1))
    history = graph.get_state_history("t")
    assert [snapshot.pending_interrupts for snapshot in history] == [[], [], []]


def test_reading_writes_nothing(checkpointer: Any) -> None:
    graph = line(checkpointer)
    graph.run_with_thread("t", {})
    run = checkpointer.find_thread_run("t")
    journal = checkpointer.list_journal(run.id)
    for checkpoint_id in ids(graph):
        graph.get_state("t", checkpoint_id)
    assert checkpointer.find_thread_run("t") == run
    assert checkpointer.list_journal(run.id) == journal


def test_resume_from_the_newest_is_a_resume(checkpointer: Any) -> None:
    """The newest named by its id begins no branch: the run goes on in its lineage."""
    builder = add_fan(new_builder(), {"a": Flaky("a")})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    target = ResumeTarget.checkpoint(failed.value.checkpoint_id)
    assert graph.resume_from("t", target).state.log == ["a"]
    lineage = checkpointer.find_thread_run("t").lineage
    assert (lineage, len(graph.get_state_history("t"))) == (0, 3)
