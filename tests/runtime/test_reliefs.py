"""Branches that a router skips, and the joins that must not wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import START, Command
from stateknot.errors import JoinUnsatisfiedError
from tests.runtime.graphs import Asker, Counted, add_fan, new_builder, note


def branching(hops: int, *, relieved: bool = True, beside: Any = None) -> Any:
    """`pick` may lead over `hops` nodes to the join of `side` and the last of them.

    The state's `mark` says whether the branch is taken. `beside` runs beside them.
    """
    nodes = {"pick": note("pick"), "side": note("side")}
    if beside is not None:
        nodes["zz"] = beside
    builder = add_fan(new_builder(), nodes)
    names = [f"hop{place}" for place in range(1, hops + 1)]
    for name in names:
        builder.add_node(name, note(name))
    if hops > 1:
        builder.add_sequence(*names)
    builder.add_node("away", note("away"))
    builder.add_conditional_edges(
        "pick",
        lambda state: "yes" if state.mark == "taken" else "no",
        {"yes": "hop1", "no": "away"},
    )
    builder.add_node("join", note("join"))
    builder.add_waiting_edge(["side", names[-1]], "join")
    if relieved:
        builder.add_barrier_relief("pick", names[-1], "join")
    return builder


def ran(builder: Any, checkpointer: Any, mark: str) -> list[str]:
    """Run a branching graph; give its log."""
    graph = builder.compile().with_checkpointer(checkpointer)
    log: list[str] = graph.run_with_thread("t", {"mark": mark}).state.log
    return log


def test_skipped_predecessor_is_not_waited_for(checkpointer: Any) -> None:
    """Scenario 111: the join fires without it, and once."""
    assert ran(branching(1), checkpointer, "") == ["pick", "side", "away", "join"]


def test_taken_predecessor_is_waited_for(checkpointer: Any) -> None:
    """Scenario 111 the other way round."""
    assert ran(branching(1), checkpointer, "taken") == ["pick", "side", "hop1", "join"]


def test_predecessor_further_on_is_waited_for(checkpointer: Any) -> None:
    """Scenario 112: the join does not fire while the branch is on its way."""
    log = ran(branching(3), checkpointer, "taken")
    assert log == ["pick", "side", "hop1", "hop2", "hop3", "join"]


def test_predecessor_further_on_that_is_skipped_is_not_waited_for(
    checkpointer: Any,
) -> None:
    """Scenario 112: two and more steps before where the branch would have joined."""
    assert ran(branching(3), checkpointer, "") == ["pick", "side", "away", "join"]


def test_skipped_predecessor_without_a_relief_fails_the_run(checkpointer: Any) -> None:
    """PF-02 (decision 7): never completed, and the message says what to add."""
    graph = branching(1, relieved=False).compile().with_checkpointer(checkpointer)
    with pytest.raises(JoinUnsatisfiedError, match=r"'join'.*hop1.*barrier relief"):
        graph.run_with_thread("t", {})


@pytest.mark.parametrize("is_parallel", [False, True])
def test_relief_of_a_step_that_pauses_is_kept(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Scenario 113: the arrival is stored with the question, the answer fires it.

    The join fires beside the question already, since nothing it needs is still out.
    """
    builder = branching(1, beside=Asker())
    graph = builder.compile().with_checkpointer(checkpointer)
    graph = graph.with_parallel() if is_parallel else graph
    assert graph.run_with_thread("t", {}).is_interrupted
    assert graph.get_state("t").next_nodes == ["away", "join", "zz"]
    done = graph.resume("t", Command(resume=1))
    assert done.state.log == ["pick", "side", "away", "join", "zz=1"]


def test_relief_waits_for_a_predecessor_that_paused(checkpointer: Any) -> None:
    """Scenario 113: the relieved join still needs the one that asks."""
    builder = new_builder().add_edge(START, ["pick", "side"])
    builder.add_node("pick", note("pick")).add_node("side", Asker())
    builder.add_node("hop", note("hop")).add_node("away", note("away"))
    builder.add_conditional_edges("pick", lambda _s: "away", ["hop", "away"])
    join = Counted(note("join"))
    builder.add_node("join", join).add_waiting_edge(["hop", "side"], "join")
    builder.add_barrier_relief("pick", "hop", "join")
    graph = builder.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    assert graph.get_state("t").next_nodes == ["away", "side"]
    done = graph.resume("t", Command(resume=1))
    assert done.state.log == ["pick", "away", "side=1", "join"]
    assert join.calls == 1
