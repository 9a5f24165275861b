"""What a builder adds to the closed form, around calls: END, joins, reliefs, goto.

Over both stores; each graph is composed, so that it runs from its definition.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import END, START, Command, GraphBuilder, append
from stateknot.errors import GraphError, StateKnotError

pytestmark = pytest.mark.usefixtures("empty_registry")


class State(BaseModel):
    log: Annotated[list[str], append] = []
    way: str = ""


def note(name: str) -> Any:
    return lambda _state: {"log": [name]}


def way(state: State) -> str:
    return state.way


def go(state: State) -> Command:
    """Choose by goto; END ends the branch."""
    return Command(update={"log": ["go"]}, goto=END if state.way == "end" else "far")


def body() -> Any:
    """One node and one way to return."""
    template = GraphBuilder("tests.body", state=State).add_node("work", note("work"))
    template.add_edge(START, "work").add_edge("work", "done")
    return template.add_port("done")


def calling(*names: str) -> Any:
    """A builder with a call that returns to `after`, and nodes that log their names."""
    builder = GraphBuilder("tests.calling", state=State)
    for name in ("after", *names):
        builder.add_node(name, note(name))
    return builder.add_subgraph_call("call", body(), returns={"done": "after"})


def joining() -> Any:
    """`extra` is taken or relieved; the join waits for it and for what the call did."""
    builder = calling("choose", "extra", "join").add_edge(START, ["call", "choose"])
    builder.add_conditional_edges("choose", way, {"take": "extra", "skip": END})
    builder.add_waiting_edge(["after", "extra"], "join")
    return builder


def run(builder: Any, checkpointer: Any, way: str = "") -> list[str]:
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.composition.node_sources
    ended = graph.run_with_thread("t", {"way": way})
    assert ended.status == "completed"
    return list(ended.state.log)


def test_join_waits_for_what_a_call_returns_to(checkpointer: Any) -> None:
    builder = calling("left", "join").add_edge(START, ["call", "left"])
    builder.add_waiting_edge(["after", "left"], "join")
    log = run(builder, checkpointer)
    assert sorted(log[:2]) == ["left", "work"]
    assert log[2:] == ["after", "join"]


@pytest.mark.parametrize(("taken", "extra"), [("take", ["extra"]), ("skip", [])])
def test_relief_counts_for_a_node_that_was_not_taken(
    taken: str, extra: list[str], checkpointer: Any
) -> None:
    """Decision 7: a join beside a call is not left waiting by a router that skips."""
    builder = joining().add_barrier_relief("choose", "extra", "join")
    log = run(builder, checkpointer, taken)
    assert sorted(log) == sorted(["after", "choose", "join", "work", *extra])
    assert log[-1] == "join"


def test_join_without_its_relief_fails_with_what_is_missing(checkpointer: Any) -> None:
    graph = joining().compile().with_checkpointer(checkpointer)
    with pytest.raises(StateKnotError, match=r"join.*extra"):
        graph.run_with_thread("t", {"way": "skip"})
    assert checkpointer.find_thread_run("t").status == "failed"


@pytest.mark.parametrize(
    ("taken", "log"),
    [("on", ["check", "work", "after"]), ("end", ["check"])],
)
def test_route_to_the_end_ends_the_branch(
    taken: str, log: list[str], checkpointer: Any
) -> None:
    """In front of a call, whose entry the other route leads to."""
    builder = calling("check").add_edge(START, "check")
    builder.add_conditional_edges("check", way, {"on": "call", "end": END})
    assert run(builder, checkpointer, taken) == log


@pytest.mark.parametrize(
    ("taken", "log"), [("far", ["work", "go", "far"]), ("end", ["work", "go"])]
)
def test_command_behind_a_call_goes_where_it_says(
    taken: str, log: list[str], checkpointer: Any
) -> None:
    builder = GraphBuilder("tests.commands", state=State).add_node("far", note("far"))
    builder.add_command_node("go", go, destinations=["far", END])
    builder.add_subgraph_call("call", body(), returns={"done": "go"})
    assert run(builder.add_edge(START, "call"), checkpointer, taken) == log


def test_goto_within_a_body_is_refused() -> None:
    """Nothing says what a goto of each iteration would mean, so it is no template."""
    template = GraphBuilder("tests.gotos", state=State).add_node("far", note("far"))
    template.add_command_node("go", go, destinations=["far"]).add_edge(START, "go")
    template.add_edge("far", "done").add_port("done")
    builder = GraphBuilder("tests.refused", state=State).add_node("end", note("end"))
    builder.add_subgraph_call("call", template, returns={"done": "end"})
    with pytest.raises(GraphError, match="may not have waiting edges, commands"):
        builder.add_edge(START, "call").compile()
