"""Edits by hand: the state that they make, and what is due behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    START,
    Command,
    NodeContext,
    Send,
)
from stateknot.errors import (
    CheckpointError,
    GraphError,
    MissingNodeError,
    NodeFailedError,
    ResumeError,
    StaleCheckpointError,
    StateError,
    ThreadBusyError,
)
from tests.runtime.graphs import (
    Asker,
    Flaky,
    Tally,
    add_fan,
    add_line,
    compiled,
    go,
    head,
    line,
    new_builder,
    note,
    note_arg,
    sources,
)

if TYPE_CHECKING:
    from stateknot import CompiledGraph


def test_write_goes_through_the_reducer(checkpointer: Any) -> None:
    """Scenario 120: 5 is added to 3, in a record of its own."""
    graph = line(checkpointer)
    before = head(graph)
    config = graph.update_state("t", {"total": 5, "log": ["by hand"]})
    newest = head(graph)
    assert newest.config == config
    assert (newest.values.total, newest.values.log[-1]) == (8, "by hand")
    assert (newest.metadata["source"], newest.parent_config) == (
        "update",
        before.config,
    )
    assert newest.metadata["step"] == before.metadata["step"] + 1


def test_write_as_an_unknown_node_is_refused(checkpointer: Any) -> None:
    """Scenario 120: the error names it, and nothing is written."""
    graph = line(checkpointer)
    with pytest.raises(MissingNodeError, match="'nobody'"):
        graph.update_state("t", {"total": 5}, as_node="nobody")
    assert head(graph).values.total == 3


def test_write_that_does_not_fit_is_refused(checkpointer: Any) -> None:
    """Decision 5: the same validation as for a node's result."""
    graph = line(checkpointer)
    with pytest.raises(StateError, match="total"):
        graph.update_state("t", {"total": "many"})
    with pytest.raises(StateError, match="typo"):
        graph.update_state("t", {"typo": 1})
    assert sources(graph, "t").count("update") == 0


def test_write_as_a_node_makes_its_successor_due(checkpointer: Any) -> None:
    """Scenario 121: a completed thread goes on behind a."""
    graph = line(checkpointer)
    graph.update_state("t", {"total": 10}, as_node="a")
    assert head(graph).next_nodes == ["b"]
    assert graph.resume("t").state.total == 15


def test_write_as_a_command_node_is_refused(checkpointer: Any) -> None:
    """Scenario 122: where it would go is its handler's decision."""
    builder = add_line(new_builder(), "plain").add_node("end", note("end"))
    builder.add_command_node("jump", go("end"), destinations=["end"])
    graph = compiled(builder.add_edge("plain", "jump"), checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(GraphError, match="non-resumable"):
        graph.update_state("t", {}, as_node="jump")
    graph.update_state("t", {}, as_node="plain")
    assert head(graph).next_nodes == ["jump"]


def test_bulk_write_makes_a_record_each(checkpointer: Any) -> None:
    """Scenario 123: in order, the last value wins."""
    graph = line(checkpointer)
    config = graph.bulk_update_state("t", [{"mark": "one"}, {"mark": "two"}])
    assert (head(graph).config, head(graph).values.mark) == (config, "two")
    assert sources(graph, "t")[-2:] == ["update", "update"]
    assert graph.get_state_history("t", limit=2)[1].values.mark == "one"


def test_bulk_write_of_nothing_is_refused(checkpointer: Any) -> None:
    """Scenario 123."""
    with pytest.raises(CheckpointError):
        line(checkpointer).bulk_update_state("t", [])


@pytest.mark.parametrize("bad", [{"total": "many"}, ({"total": 1}, "nobody")])
def test_bulk_write_is_all_or_nothing(bad: Any, checkpointer: Any) -> None:
    """Scenario 123, unlike the reference (D9's kind): one transaction."""
    graph = line(checkpointer)
    before = (head(graph), checkpointer.find_thread_run("t"))
    with pytest.raises((StateError, MissingNodeError)):
        graph.bulk_update_state("t", [({"mark": "x"}, "a"), {"mark": "y"}, bad])
    assert (head(graph), checkpointer.find_thread_run("t")) == before


def test_bulk_write_as_nodes_walks_the_graph(checkpointer: Any) -> None:
    """A run played by hand: each write is done behind the one before."""
    graph = line(checkpointer)
    graph.bulk_update_state("t", [({"mark": "a"}, "a"), ({"mark": "b"}, "b")])
    assert head(graph).next_nodes == ["c"]


def diamond(checkpointer: Any) -> CompiledGraph:
    """a leads to b and c, which meet in merge; c asks. 1, 10, the answer, 100."""
    builder = add_fan(new_builder(), {"a": note("a", 1)})
    builder.add_node("b", note("b", 10)).add_node("c", Asker())
    builder.add_node("merge", note("merge", 100)).add_edge("a", ["b", "c"])
    graph = compiled(builder.add_waiting_edge(["b", "c"], "merge"), checkpointer)
    graph.run_with_thread("t", {})
    return graph


def test_write_as_a_done_branch_schedules_no_join(checkpointer: Any) -> None:
    """Scenario 127: c is still pending, and what is due matches what is shown."""
    graph = diamond(checkpointer)
    graph.update_state("t", {"log": ["b again"]}, as_node="b")
    record = checkpointer.find_checkpoint("t")
    assert head(graph).next_nodes == ["c"]
    assert [activation.node for activation in record.pending] == ["c"]
    done = graph.resume("t", Command(resume=2))
    assert (done.state.total, done.state.log[-1]) == (113, "merge")


def two_branches(checkpointer: Any) -> CompiledGraph:
    """Thread "t" with b (leading to y) and c pending behind the failure of b."""
    builder = add_fan(new_builder(), {"b": Flaky("b", 9), "c": note("c", 3)})
    builder.add_node("y", note("y", 10)).add_edge("b", "y")
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {"total": 40})
    return graph


def test_write_as_one_of_two_branches(checkpointer: Any) -> None:
    """Scenario 128: c and y are due, b is not; 40 + 3 + 10."""
    graph = two_branches(checkpointer)
    graph.update_state("t", {}, as_node="b")
    assert head(graph).next_nodes == ["c", "y"]
    assert graph.retry("t").state.total == 53


def test_write_as_a_sink_leaves_its_sibling(checkpointer: Any) -> None:
    """Scenario 129: 60 by hand, 11 from the sibling."""
    builder = add_fan(new_builder(), {"a": Flaky("a", 9), "b": note("b", 11)})
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.update_state("t", {"total": 60}, as_node="a")
    assert head(graph).next_nodes == ["b"]
    assert graph.retry("t").state.total == 71


def test_write_keeps_pending_sends(checkpointer: Any) -> None:
    """Scenario 130: their arguments survive, and the successor joins them."""
    builder = new_builder().add_edge(START, "split").add_node("worker", note_arg)
    sends = (Send("worker", n) for n in (1, 2, 3))
    builder.add_node("split", go("bad", *sends)).add_node("bad", Flaky("bad", 9))
    builder.add_node("other", note("other")).add_node("next", note("next", 100))
    graph = compiled(builder.add_edge("other", "next"), checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.update_state("t", {}, as_node="other")
    assert head(graph).next_nodes == ["bad", *["worker"] * 3, "next"]
    graph.update_state("t", {}, as_node="bad")
    done = graph.retry("t").state
    assert done.total == 106
    assert done.log == ["worker:1", "worker:2", "worker:3", "next"]


def test_write_keeps_the_question(checkpointer: Any) -> None:
    """Replaces scenario 131 (decision 5, D1): only the node that asked is answered."""
    seen: list[Any] = []

    def sibling(_state: Tally, ctx: NodeContext) -> Any:
        seen.append(ctx.has_resume)
        return {}

    builder = add_fan(new_builder(), {"a": note("a"), "b": Asker()})
    builder.add_node("x", sibling).add_edge("a", "x")
    graph = compiled(builder, checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts
    graph.update_state("t", {"mark": "edited"})
    assert head(graph).pending_interrupts == asked
    assert head(graph).next_nodes == ["x", "b"]
    assert head(graph).metadata["interrupted_nodes"] == ["b"]
    done = graph.resume("t", Command(resume=7))
    assert (done.state.mark, done.state.total, seen) == ("edited", 7, [False])


def test_completed_thread_that_was_edited_is_not_resumed(checkpointer: Any) -> None:
    """Scenario 105 holds behind an edit that makes nothing due."""
    graph = line(checkpointer)
    graph.update_state("t", {"mark": "x"})
    with pytest.raises(ResumeError, match="no pending nodes"):
        graph.resume("t")


@pytest.mark.parametrize("jump", [False, True])
def test_edit_keeps_what_is_due(jump: bool, checkpointer: Any) -> None:
    """TT-04, TT-03: after a plain edge or a jump; an edit without a node is plain."""
    builder = add_fan(new_builder(), {"a": go("c") if jump else note("a")})
    builder.add_node("b", Flaky("b")).add_node("c", Flaky("c"))
    builder = builder if jump else builder.add_edge("a", "b")
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    due = ["c" if jump else "b"]
    graph.bulk_update_state("t", [{"mark": "one"}, {"mark": "two"}])
    assert head(graph).next_nodes == due
    assert graph.resume("t").visited == due


def test_edit_after_a_parallel_step_is_not_ambiguous(checkpointer: Any) -> None:
    """TT-03: decision 5 makes it plain; without a node nothing pending changes."""
    graph = two_branches(checkpointer)
    before = head(graph)
    graph.update_state("t", {"mark": "x"})
    assert head(graph).next_nodes == before.next_nodes
    assert head(graph).metadata["failed_node"] == "b"


def test_write_names_the_checkpoint_it_expects(checkpointer: Any) -> None:
    """Decision 5: an edit of a state that is gone is refused with what stands."""
    graph = line(checkpointer)
    old = head(graph).config["checkpoint_id"]
    graph.update_state("t", {"mark": "mine"}, expected_checkpoint_id=old)
    with pytest.raises(StaleCheckpointError) as stale:
        graph.update_state("t", {"mark": "late"}, expected_checkpoint_id=old)
    assert stale.value.found == head(graph).config["checkpoint_id"]
    assert head(graph).values.mark == "mine"


def test_write_while_the_run_is_driven_is_refused(checkpointer: Any) -> None:
    """Decision 5: the drive would write over it."""
    refused: list[type[Exception]] = []

    def edits(_state: Tally) -> dict[str, Any]:
        with pytest.raises(ThreadBusyError) as busy:
            graph.update_state("t", {"mark": "x"})
        refused.append(busy.type)
        return {}

    graph = compiled(add_fan(new_builder(), {"a": edits}), checkpointer)
    assert graph.run_with_thread("t", {}).state.mark == ""
    assert refused == [ThreadBusyError]
