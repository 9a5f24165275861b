"""Nodes marked as done by hand, and values that are replaced."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from stateknot import (
    Overwrite,
    RunStatus,
)
from stateknot.errors import (
    NodeFailedError,
    ResumeError,
)
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    add_fan,
    add_line,
    compiled,
    head,
    line,
    new_builder,
    note,
)


def test_write_as_the_paused_node_skips_it(checkpointer: Any) -> None:
    """Scenario 132: its question is closed, its successor runs."""
    asker = Asker()
    builder = add_fan(new_builder(), {"a": asker}).add_node("b", note("b"))
    graph = compiled(builder.add_edge("a", "b"), checkpointer)
    graph.run_with_thread("t", {})
    graph.update_state("t", {"mark": "skipped"}, as_node="a")
    assert head(graph).pending_interrupts == []
    done = graph.retry("t")
    assert (done.state.log, done.state.mark) == (["b"], "skipped")
    assert (asker.calls, done.status) == (1, RunStatus.COMPLETED)


@pytest.mark.parametrize("make", [Asker, lambda: Flaky("a", 9)])
def test_last_node_that_is_done_by_hand_ends_the_run(
    make: Any, checkpointer: Any
) -> None:
    """Scenario 132, TT-08: the thread is not left paused or failed for good."""
    handler = make()
    graph = compiled(add_fan(new_builder(), {"a": handler}), checkpointer)
    with contextlib.suppress(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.update_state("t", {"mark": "done"}, as_node="a")
    done = graph.retry("t")
    assert (done.status, done.state.mark) == (RunStatus.COMPLETED, "done")
    assert (done.visited, done.steps, handler.calls) == ([], 0, 1)
    with pytest.raises(ResumeError, match="no pending nodes"):
        graph.retry("t")


def test_failed_node_is_marked_as_done(checkpointer: Any) -> None:
    """TT-07: b does not run again, c sees the value, the journal says who."""
    bad, seen = Flaky("b", 9), Counted(note("c"))
    builder = add_line(new_builder(), "a").add_node("b", bad).add_node("c", seen)
    graph = compiled(builder.add_sequence("a", "b", "c"), checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.update_state("t", {"mark": "5"}, as_node="b")
    assert head(graph).metadata["failed_node"] is None
    done = graph.retry("t")
    assert (done.visited, done.state.mark) == (["c"], "5")
    assert (bad.calls, seen.calls) == (1, 1)
    run = checkpointer.find_thread_run("t")
    kinds = [(e.kind, e.node) for row in journal(checkpointer, run.id) for e in row]
    assert ("state.edited", "b") in kinds


def journal(checkpointer: Any, run_id: str) -> list[Any]:
    return [row.events for row in checkpointer.list_journal(run_id)]


def test_successors_of_a_repaired_node_run_by_themselves(checkpointer: Any) -> None:
    """TT-08, TT-09: nothing derived is stored, and a does not run again."""
    first, flaky = Counted(note("a")), Flaky("b")
    builder = add_fan(new_builder(), {"a": first}).add_node("b", flaky)
    builder.add_node("c", note("c")).add_node("d", note("d"))
    builder.add_edge("a", "b").add_edge("b", ["c", "d"])
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["a", "b", "c", "d"]
    assert (first.calls, flaky.calls) == (1, 2)


def test_overwrite_replaces_an_accumulating_field(checkpointer: Any) -> None:
    """ST-06: the list is empty afterwards, and grows again from there."""
    graph = line(checkpointer)
    graph.update_state("t", {"log": Overwrite([]), "mark": Overwrite("k")})
    assert (head(graph).values.log, head(graph).values.mark) == ([], "k")
    graph.update_state("t", {"log": ["new"]}, as_node="b")
    assert graph.resume("t").state.log == ["new", "c"]


def test_overwrite_by_a_node_is_stored(checkpointer: Any) -> None:
    """ST-06: what is read later is the value, not the marker."""
    builder = add_line(new_builder(), "a").add_node(
        "b", lambda _s: {"log": Overwrite(["only"])}
    )
    graph = compiled(builder.add_edge("a", "b"), checkpointer)
    graph.run_with_thread("t", {})
    assert head(graph).values.log == ["only"]
    assert checkpointer.find_checkpoint("t").values["log"] == ["only"]


def test_two_overwrites_in_one_step_are_refused(checkpointer: Any) -> None:
    """ST-06: neither of them counts, and the failure is that of the first."""
    replace = {"log": Overwrite(["x"])}
    builder = add_fan(new_builder(), {"a": lambda _s: replace, "b": lambda _s: replace})
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError, match="log"):
        graph.run_with_thread("t", {})
    assert head(graph).metadata["failed_node"] == "a"
