"""Forks: a new thread that begins with a copy of another's checkpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import (
    Command,
    GraphInput,
    NodeContext,
    ResumeTarget,
    RunStatus,
    Timer,
)
from stateknot.errors import CheckpointError, NodeFailedError, ThreadBusyError
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    add_fan,
    add_line,
    compiled,
    line,
    new_builder,
    note,
    note_arg,
)


def test_fork_begins_a_thread_of_its_own(checkpointer: Any) -> None:
    """Scenario 124: a root record with source fork, and no parent."""
    graph = line(checkpointer)
    config = graph.fork_state("t", "u")
    root = graph.get_state("u")
    assert (root.config, root.parent_config) == (config, None)
    assert (root.metadata["source"], root.metadata["step"]) == ("fork", 3)
    assert root.values == graph.get_state("t").values


def test_fork_leaves_its_source_as_it_was(checkpointer: Any) -> None:
    """Scenario 124: whatever happens to the copy."""
    graph = line(checkpointer)
    before = graph.get_state_history("t")
    graph.fork_state("t", "u")
    graph.update_state("u", {"mark": "copy"}, as_node="a")
    assert graph.resume("u").state.mark == "copy"
    assert graph.get_state_history("t") == before


def test_fork_of_an_older_checkpoint_goes_on_from_there(checkpointer: Any) -> None:
    """Scenario 124, with a checkpoint id."""
    graph = line(checkpointer)
    (_, _, first, _) = graph.get_state_history("t")
    graph.fork_state("t", "u", first.config["checkpoint_id"])
    done = graph.resume("u")
    assert (done.visited, done.state.log) == (["b", "c"], ["a", "b", "c"])
    assert done.run_id != checkpointer.find_thread_run("t").id


def test_fork_of_an_unknown_checkpoint_is_refused(checkpointer: Any) -> None:
    """Scenario 133: the error names it, and no thread is made."""
    graph = line(checkpointer)
    with pytest.raises(CheckpointError, match="no-such-id"):
        graph.fork_state("t", "u", "no-such-id")
    assert graph.get_state("u") is None


def test_fork_carries_an_open_question(checkpointer: Any) -> None:
    """Decision 10, D2: both are answered, each for itself."""
    graph = compiled(add_fan(new_builder(), {"a": Asker()}), checkpointer)
    (asked,) = graph.run_with_thread("t", {}).interrupts
    graph.fork_state("t", "u")
    (copied,) = graph.get_state("u").pending_interrupts
    assert (copied.payload, copied.id != asked.id) == (asked.payload, True)
    assert graph.get_state("u").metadata["interrupted_nodes"] == ["a"]
    assert graph.resume("u", Command(resume=5)).state.total == 5
    assert graph.get_state("t").pending_interrupts == [asked]
    assert graph.resume("t", Command(resume=6)).state.total == 6


def test_fork_does_not_ask_again(checkpointer: Any) -> None:
    """D2: the node that asked runs in the fork only with its answer."""
    asker = Asker()
    graph = compiled(add_fan(new_builder(), {"a": asker}), checkpointer)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    assert graph.retry("u").status is RunStatus.INTERRUPTED
    graph.resume("u", Command(resume=1))
    assert asker.calls == 2


def test_fork_of_an_answered_pause_keeps_the_answer(checkpointer: Any) -> None:
    """Decision 3: a was answered before that checkpoint, b is open there."""
    builder = add_fan(new_builder(), {"a": Asker("a?"), "b": Asker("b?")})
    graph = compiled(builder.with_parallel(), checkpointer)
    second = graph.run_with_thread("t", {}).interrupts[1]
    graph.resume("t", Command(answers={second.id: 2}))
    graph.fork_state("t", "u")
    assert [q.payload for q in graph.get_state("u").pending_interrupts] == ["a?"]
    assert graph.resume("u", Command(resume=1)).state.log == ["a=1", "b=2"]


def test_fork_carries_pending_results(checkpointer: Any) -> None:
    """Decisions 2 and 10: b was done, so neither thread runs it again."""
    quick = Counted(note("b"))
    builder = add_fan(new_builder(), {"a": Flaky("a"), "b": quick}).with_parallel()
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    assert graph.resume("u").state.log == ["a", "b"]
    assert graph.retry("t").state.log == ["a", "b"]
    assert quick.calls == 1


def test_fork_carries_send_arguments(checkpointer: Any) -> None:
    graph = compiled(add_fan(new_builder(), {"a": Asker()}), checkpointer)
    builder = add_fan(new_builder(), {"a": Asker()}).add_node("w", note_arg)
    graph = compiled(builder, checkpointer)
    inputs = [GraphInput.node("a"), GraphInput.new("w", 3)]
    graph.run_with_thread_inputs("t", {}, inputs)
    graph.fork_state("t", "u")
    assert graph.resume("u", Command(resume=1)).state.log == ["a=1", "w:3"]


def test_fork_has_idempotency_keys_of_its_own(checkpointer: Any) -> None:
    """Decision 15: the same activation in a fork is another effect."""
    keys: list[str] = []

    def keyed(_state: Any, ctx: NodeContext) -> Any:
        keys.append(ctx.idempotency_key)
        return {}

    builder = add_line(new_builder(), "a").add_node("b", keyed).add_edge("a", "b")
    graph = compiled(builder, checkpointer)
    graph.run_with_thread("t", {})
    (_, first, _) = graph.get_state_history("t")
    graph.fork_state("t", "u", first.config["checkpoint_id"])
    graph.resume("u")
    graph.resume_from("t", ResumeTarget.checkpoint(first.config["checkpoint_id"]))
    assert len(set(keys)) == 3


def test_fork_waits_as_its_source_does(checkpointer: Any) -> None:
    """Decision 4: a copy does not get ahead of the time that was set."""
    builder = add_line(new_builder(), "a").add_node("b", sleeps)
    builder.add_node("c", note("c")).add_sequence("a", "b", "c")
    graph = compiled(builder, checkpointer)
    graph.run_with_thread("t", {})
    due = checkpointer.find_thread_run("t").wake_at
    graph.update_state("t", {"mark": "edited"})
    graph.fork_state("t", "u")
    assert graph.resume("u").status is RunStatus.WAITING
    left = checkpointer.find_thread_run("u").wake_at - due
    assert abs(left) < timedelta(minutes=1)
    assert graph.retry("u").state.log == ["a", "c"]


def sleeps(_state: Any) -> Any:
    return Timer(timedelta(hours=1))


def test_fork_of_what_came_after_a_wait_does_not_wait(checkpointer: Any) -> None:
    """Decision 4: that time is over for this lineage."""
    builder = add_fan(new_builder(), {"a": sleeps}).add_node("b", note("b"))
    builder.add_node("c", Asker()).add_sequence("a", "b", "c")
    graph = compiled(builder, checkpointer)
    graph.run_with_thread("t", {})
    graph.retry("t")
    graph.fork_state("t", "u")
    assert graph.resume("u", Command(resume=1)).status is RunStatus.COMPLETED


def test_fork_onto_a_thread_that_is_held_is_refused(checkpointer: Any) -> None:
    """Decision 11: as any other start."""
    graph = compiled(add_fan(new_builder(), {"a": Asker()}), checkpointer)
    graph.run_with_thread("t", {})
    graph.run_with_thread("u", {})
    with pytest.raises(ThreadBusyError):
        graph.fork_state("t", "u")


def test_fork_onto_a_used_thread_begins_a_root(checkpointer: Any) -> None:
    """Section 5.6: the target need not be empty; its history is the fork's."""
    graph = line(checkpointer)
    graph.run_with_thread("u", {"total": 50})
    graph.fork_state("t", "u")
    (root,) = graph.get_state_history("u")
    assert (root.values.total, root.parent_config) == (3, None)


def test_fork_can_be_forked(checkpointer: Any) -> None:
    graph = compiled(add_fan(new_builder(), {"a": Asker()}), checkpointer)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    graph.fork_state("u", "v")
    assert graph.resume("v", Command(resume=3)).state.total == 3
    assert graph.get_state("u").metadata["source"] == "fork"
