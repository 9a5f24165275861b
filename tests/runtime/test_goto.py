"""Nodes that choose their successors: `Command(goto=...)` and `Send`."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import END, START, Command, NodeContext, RunStatus, Send
from stateknot.errors import GraphError, MissingNodeError, RoutingError
from tests.runtime.graphs import (
    Counted,
    Tally,
    add_fan,
    add_line,
    go,
    new_builder,
    note,
    note_arg,
    sources,
)


def jumping(*targets: Any, to: tuple[str, ...] = ("b", "c")) -> Any:
    """A graph whose first node leads to `targets`; nodes `to` log their argument."""
    builder = new_builder().add_command_node("a", go(*targets), destinations=list(to))
    for name in to:
        builder.add_node(name, note_arg)
    return builder.add_edge(START, "a")


def test_command_folds_its_update_before_its_target_runs(checkpointer: Any) -> None:
    """Scenario 20."""
    builder = new_builder().add_edge(START, "a")
    builder.add_node("a", lambda _s: Command(update={"total": 5}, goto="b"))
    builder.add_node("b", lambda state: {"log": [f"saw {state.total}"]})
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state == Tally(total=5, log=["saw 5"])


@pytest.mark.parametrize(("total", "chosen"), [(1, "b"), (9, "c")])
def test_goto_chosen_from_the_state_runs_its_target(total: int, chosen: str) -> None:
    """Scenario 21: with declared destinations."""
    builder = jumping()
    builder.add_command_node(
        "choose",
        lambda state: Command(goto="b" if state.total < 5 else "c"),
        destinations=["b", "c"],
    )
    graph = builder.add_edge(START, "choose").compile()
    assert graph.run({"total": total}).visited == ["a", "choose", chosen]


def test_goto_to_an_unknown_node_is_missing_node() -> None:
    """Scenario 22: at once, naming it."""
    with pytest.raises(MissingNodeError, match="'ghost'") as failed:
        jumping("ghost").compile().run({})
    assert isinstance(failed.value, RoutingError)


def test_goto_to_start_is_a_graph_error() -> None:
    """Scenario 23."""
    with pytest.raises(GraphError, match="START"):
        jumping(START).compile().run({})


def test_goto_to_an_unknown_node_leaves_a_failure_boundary(checkpointer: Any) -> None:
    """Replaces scenario 24 (decisions 2, 6): resumable, and the update not folded."""
    node = Counted(lambda _s: Command(update={"total": 1}, goto="ghost"))
    builder = add_fan(new_builder(), {"a": node})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(MissingNodeError) as failed:
        graph.run_with_thread("t", {})
    head = graph.get_state("t")
    assert failed.value.checkpoint_id == head.config["checkpoint_id"]
    assert (head.values, head.next_nodes) == (Tally(), ["a"])
    assert sources(graph, "t") == ["input", "failure"]
    with pytest.raises(MissingNodeError):
        graph.retry("t")
    assert node.calls == 1


def test_wrong_goto_is_mended_by_marking_the_node_as_done(checkpointer: Any) -> None:
    """Replaces scenario 24 (decision 5): the way on when a goto can never work."""
    builder = add_fan(new_builder(), {"a": go("ghost")}).add_node("b", note("b"))
    graph = builder.add_edge("a", "b").compile().with_checkpointer(checkpointer)
    with pytest.raises(MissingNodeError):
        graph.run_with_thread("t", {})
    graph.update_state("t", {"log": ["by hand"]}, as_node="a")
    assert graph.retry("t").state.log == ["by hand", "b"]


def test_goto_end_leaves_a_static_edge_aside() -> None:
    """Scenario 25."""
    builder = add_fan(new_builder(), {"a": go(END)}).add_node("b", note("b"))
    execution = builder.add_edge("a", "b").compile().run({})
    assert (execution.visited, execution.status) == (["a"], RunStatus.COMPLETED)


@pytest.mark.parametrize("goto", [None, []])
def test_command_without_a_goto_follows_the_static_edge(goto: Any) -> None:
    """Scenario 26."""
    builder = new_builder().add_edge(START, "a").add_node("b", note("b"))
    builder.add_node("a", lambda _s: Command(update={"mark": "x"}, goto=goto))
    execution = builder.add_edge("a", "b").compile().run({})
    assert (execution.visited, execution.state.mark) == (["a", "b"], "x")


def test_command_node_with_a_plain_update_completes() -> None:
    """Scenario 27: it leads nowhere, so its branch ends."""
    builder = new_builder().add_command_node("a", note("a"), destinations=["b"])
    execution = builder.add_node("b", note("b")).add_edge(START, "a").compile().run({})
    assert (execution.visited, execution.status) == (["a"], RunStatus.COMPLETED)


def test_plain_goto_brings_no_argument() -> None:
    """Scenario 28."""
    assert jumping("b").compile().run({}).state.log == ["b:None"]


def test_plain_gotos_merge_but_sends_do_not(checkpointer: Any) -> None:
    """Scenario 29: twice plainly and twice by Send are three activations in order."""
    graph = jumping("b", "b", Send("b", 1), Send("b", 2)).compile()
    graph = graph.with_checkpointer(checkpointer)
    execution = graph.run_with_thread("t", {})
    assert execution.state.log == ["b:None", "b:1", "b:2"]


def test_send_with_a_null_argument_is_not_merged() -> None:
    """Scenario 29: an argument of null is an argument."""
    graph = jumping("b", Send("b", None), Send("b")).compile()
    assert graph.run({}).visited == ["a", "b", "b", "b"]


@pytest.mark.parametrize("is_parallel", [False, True])
def test_each_send_has_its_own_argument(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 40: the node is visited once for each."""
    graph = jumping(*(Send("b", n) for n in (3, 1, 2))).compile()
    graph = graph.with_checkpointer(checkpointer)
    graph = graph.with_parallel() if is_parallel else graph
    execution = graph.run_with_thread("t", {})
    assert execution.state == Tally(total=6, log=["b:3", "b:1", "b:2"])
    assert execution.visited == ["a", "b", "b", "b"]


def by_argument(_state: Tally, ctx: NodeContext) -> Command:
    return Command(goto=ctx.send_arg)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_routing_belongs_to_the_activation(is_parallel: bool) -> None:
    """Scenario 41: two Sends of one node that go to different places."""
    builder = new_builder().add_node("b", note("b")).add_node("c", note("c"))
    builder.add_node("a", go(Send("pick", "c"), Send("pick", "b")))
    graph = builder.add_node("pick", by_argument).add_edge(START, "a").compile()
    graph = graph.with_parallel() if is_parallel else graph
    assert graph.run({}).visited == ["a", "pick", "pick", "c", "b"]


def test_goto_of_an_ordinary_node_needs_no_declaration() -> None:
    """Scenario 21 without hints: an undeclared goto exists all the same."""
    builder = add_line(new_builder(), "z").add_node("b", note("b"))
    builder.add_node("a", go("b")).add_edge("z", "a")
    assert builder.compile().run({}).visited == ["z", "a", "b"]
