"""Supersteps in a row, and the choice of successors by edges and routers."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from stateknot import END, START, Command, NodeContext, RunStatus
from stateknot.errors import MissingRouteError, RoutingError, ValidationError
from tests.runtime.graphs import (
    Counted,
    Tally,
    add_fan,
    add_line,
    go,
    new_builder,
    note,
    sources,
)


def routed(router: Any, routes: Any, *targets: str) -> Any:
    """A graph in which node `a` adds 1 and `router` leads on from there."""
    builder = add_line(new_builder(), "a")
    for name in targets:
        builder.add_node(name, note(name))
    return builder.add_conditional_edges("a", router, routes)


def test_two_nodes_fold_one_after_the_other(checkpointer: Any) -> None:
    """Scenario 12: increment, then double, with an adding reducer."""
    builder = new_builder()
    builder.add_node("inc", lambda _state: {"total": 1, "log": ["inc"]})
    builder.add_node("double", lambda state: {"total": state.total, "log": ["double"]})
    graph = builder.add_sequence(START, "inc", "double").compile()
    execution = graph.with_checkpointer(checkpointer).run_with_thread("t", {})
    assert execution.state == Tally(total=2, log=["inc", "double"])
    assert (execution.steps, execution.status) == (2, RunStatus.COMPLETED)


def test_line_of_three_takes_three_steps(checkpointer: Any) -> None:
    """Scenario 13; the head's step is the number of supersteps."""
    graph = add_line(new_builder(), "a", "b", "c").compile()
    graph = graph.with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).steps == 3
    steps = [snapshot.metadata["step"] for snapshot in graph.get_state_history("t")]
    assert steps == [3, 2, 1, 0]


@pytest.mark.parametrize(("start", "chosen"), [(0, "odd"), (1, "even")])
def test_router_judges_the_folded_state(start: int, chosen: str) -> None:
    """Scenario 14: node `a` adds 1 before its router looks."""
    builder = routed(
        lambda state: "odd" if state.total % 2 else "even",
        {"odd": "odd", "even": "even"},
        "odd",
        "even",
    )
    assert builder.compile().run({"total": start}).visited == ["a", chosen]


@pytest.mark.parametrize("answer", ["stop", END])
def test_router_that_chooses_end_ends_the_branch(answer: str) -> None:
    """Scenario 15: by a label that leads to END, or by END itself."""
    graph = routed(lambda _s: answer, {"stop": END, "b": "b"}, "b").compile()
    execution = graph.run({})
    assert (execution.visited, execution.status) == (["a"], RunStatus.COMPLETED)


def test_loop_asks_its_router_at_each_step(checkpointer: Any) -> None:
    """Scenario 16."""
    builder = routed(lambda s: "on" if s.total < 3 else END, {"on": "a"})
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited == ["a", "a", "a"]


class Way(Enum):
    UP = "up"


class Label:
    def __str__(self) -> str:
        return "up"


@pytest.mark.parametrize("answer", ["up", Way.UP, Label()])
@pytest.mark.parametrize("declared", ["up", Way.UP])
def test_route_label_matches_by_its_text(answer: Any, declared: Any) -> None:
    """Scenario 17: enum members and wrappers do as labels."""
    graph = routed(lambda _s: answer, {declared: "b"}, "b").compile()
    assert graph.run({}).visited == ["a", "b"]


def test_router_that_returns_labels_fans_out() -> None:
    """A list of labels leads to all of them, each once."""
    routes = {"x": "c", "y": "b", "z": "c"}
    graph = routed(lambda _s: ["x", "y", "z"], routes, "b", "c").compile()
    assert graph.run({}).visited == ["a", "c", "b"]


def test_unknown_label_leaves_a_failure_boundary(checkpointer: Any) -> None:
    """Replaces scenario 18 (decisions 6, 8); EX-10: who chose what of which."""
    builder = routed(lambda _s: "q", {"b": "b", "stop": END}, "b")
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(MissingRouteError) as failed:
        graph.run_with_thread("t", {})
    text = str(failed.value)
    assert all(part in text for part in ("'a'", "<lambda>", "'q'", "'b'", "'stop'"))
    head = graph.get_state("t")
    assert (head.next_nodes, head.metadata["failed_node"]) == (["a"], "a")
    assert head.metadata["error"]["code"] == "node.missing_route"
    assert sources(graph, "t") == ["input", "failure"]


def test_router_that_raises_leaves_a_failure_boundary(checkpointer: Any) -> None:
    """EX-10: the router is named, and no successor was started."""

    def pick_warehouse(_state: Tally) -> str:
        raise KeyError("berlin")

    builder = routed(pick_warehouse, {"b": "b"}, "b")
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(RoutingError, match="pick_warehouse") as failed:
        graph.run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, KeyError)
    head = graph.get_state("t")
    assert (head.next_nodes, head.metadata["failed_node"]) == (["a"], "a")
    assert "pick_warehouse" in head.metadata["error"]["message"]
    assert "berlin" in head.metadata["error"]["traceback"]


def test_retry_of_a_routing_error_repeats_the_router_only(checkpointer: Any) -> None:
    """Replaces scenario 18 (decision 2): the node's result is kept, folded once."""
    answers = iter(["q", "b"])
    node = Counted(note("a", 1))
    builder = add_fan(new_builder(), {"a": node}).add_node("b", note("b"))
    builder.add_conditional_edges("a", lambda _s: next(answers), {"b": "b"})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(MissingRouteError):
        graph.run_with_thread("t", {})
    assert graph.get_state("t").values == Tally()
    assert graph.retry("t").state == Tally(total=1, log=["a", "b"])
    assert node.calls == 1


def test_router_is_called_once_for_an_activation() -> None:
    """Scenario 19."""
    router = Counted(lambda _state: "b")
    assert routed(router, {"b": "b"}, "b").compile().run({}).visited == ["a", "b"]
    assert router.calls == 1


def test_router_cannot_change_the_state() -> None:
    """ST-07: it judges a copy."""

    def router(state: Tally) -> str:
        state.log.append("router")
        return END

    assert routed(router, {"stop": END}).compile().run({}).state.log == ["a"]


def test_branches_with_an_edge_to_one_node_run_it_once(checkpointer: Any) -> None:
    """Scenario 30."""
    builder = add_fan(new_builder(), {"a": note("a"), "b": note("b")})
    builder.add_node("join", note("join"))
    builder.add_edge("a", "join").add_edge("b", "join")
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited == ["a", "b", "join"]


def test_branch_sees_the_state_before_its_step(checkpointer: Any) -> None:
    """Scenario 31: in a sequential step too, not what its sibling just did."""
    seen = {}

    def second(state: Tally, _ctx: NodeContext) -> None:
        seen["log"] = state.log

    builder = add_fan(new_builder(), {"first": note("first"), "second": second})
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {"log": ["before"]}).state.log[-1] == "first"
    assert seen["log"] == ["before"]


def test_goto_takes_the_place_of_a_static_edge(checkpointer: Any) -> None:
    """EX-08 (decision 14): a jumps to c, so its edge to b is not followed."""
    builder = add_fan(new_builder(), {"a": go("c")})
    builder.add_node("b", note("b")).add_node("c", note("c"))
    builder.add_edge("a", "b").add_edge("b", "c")
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited == ["a", "c"]


def test_plain_edge_beside_a_route_to_the_same_node_is_refused() -> None:
    """EX-09: what would have run the target twice does not compile."""
    builder = routed(lambda _s: "c", {"c": "c"}, "c").add_edge("a", "c")
    with pytest.raises(ValidationError, match="keep one kind"):
        builder.compile()


def test_two_routes_to_one_node_run_it_once() -> None:
    """EX-09: two ways from one source to one target are one activation."""
    graph = routed(lambda _s: ["x", "y"], {"x": "c", "y": "c"}, "c").compile()
    assert graph.run({}).visited == ["a", "c"]


def test_command_with_a_route_follows_that_route() -> None:
    """A node with declared routes may choose by label in place of its router."""
    builder = add_fan(new_builder(), {"a": lambda _s: Command(route="up")})
    builder.add_node("b", note("b")).add_node("c", note("c"))
    builder.add_conditional_edges("a", lambda _s: "down", {"up": "b", "down": "c"})
    assert builder.compile().run({}).visited == ["a", "b"]
