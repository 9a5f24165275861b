"""Joins over whole runs: who has arrived, who is still out, what is handed over.

`tests/kernel/test_selection.py` holds the decision itself; `test_reliefs.py` the
branches that a router skips.
"""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import END, START, Command, NodeContext, Send
from stateknot.errors import JoinUnsatisfiedError, NodeFailedError, ResumeError
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    Tally,
    add_fan,
    go,
    new_builder,
    note,
    note_arg,
)

MODES = pytest.mark.parametrize("is_parallel", [False, True])


def joined(builder: Any, checkpointer: Any, is_parallel: bool = False) -> Any:
    """Compile a graph that keeps its threads."""
    graph = builder.compile().with_checkpointer(checkpointer)
    return graph.with_parallel() if is_parallel else graph


def unequal(join: Any = None) -> Any:
    """Branch a of one node, branch b of two, and a join of both."""
    builder = add_fan(new_builder(), {"a": note("a"), "b": note("b")})
    builder.add_node("b2", note("b2")).add_edge("b", "b2")
    builder.add_node("join", join or note("join"))
    return builder.add_waiting_edge(["a", "b2"], "join")


@MODES
def test_join_waits_for_the_longer_branch(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 109; PF-01: it runs once, last, and sees both branches."""
    join = Counted(lambda state: {"mark": ",".join(state.log)})
    graph = joined(unequal(join), checkpointer, is_parallel)
    done = graph.run_with_thread("t", {})
    assert (done.state.mark, join.calls) == ("a,b,b2", 1)
    assert done.visited == ["a", "b", "b2", "join"]


def test_join_waits_over_a_pause(checkpointer: Any) -> None:
    """Scenario 110: what had arrived before the question still counts behind it."""
    nodes = {"a": note("a"), "b": Asker()}
    builder = add_fan(new_builder(), nodes).add_node("c", note("c"))
    builder.add_edge("b", "c").add_node("join", note("join"))
    graph = joined(builder.add_waiting_edge(["a", "c"], "join"), checkpointer)
    graph.run_with_thread("t", {})
    assert graph.get_state("t").next_nodes == ["b"]
    done = graph.resume("t", Command(resume=1))
    assert done.state.log == ["a", "b=1", "c", "join"]


@MODES
def test_join_waits_over_a_failure(checkpointer: Any, is_parallel: bool) -> None:
    """Scenario 110 with a failure; PF-05: b runs again alone, and the join once."""
    first, join = Counted(note("a")), Counted(note("join"))
    builder = add_fan(new_builder(), {"a": first, "b": Flaky("b")})
    builder.add_node("join", join).add_waiting_edge(["a", "b"], "join")
    graph = joined(builder, checkpointer, is_parallel)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert join.calls == 0
    assert graph.retry("t").state.log == ["a", "b", "join"]
    assert (first.calls, join.calls) == (1, 1)


def test_fork_of_a_thread_keeps_what_arrived(checkpointer: Any) -> None:
    """Decision 7 with 10: arrivals belong to the record, so a fork has them too."""
    builder = add_fan(new_builder(), {"a": note("a"), "b": Asker()})
    builder.add_node("join", note("join")).add_waiting_edge(["a", "b"], "join")
    graph = joined(builder, checkpointer)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    assert graph.resume("u", Command(resume=1)).state.log == ["a", "b=1", "join"]


def withheld(*arguments: Any) -> Any:
    """A node that Sends to a join whose predecessors it is one of."""
    builder = new_builder().add_edge(START, ["a", "b"])
    builder.add_node("a", go(*(Send("join", argument) for argument in arguments)))
    builder.add_node("b", note("b")).add_node("c", note("c")).add_edge("b", "c")
    builder.add_node("join", note_arg)
    return builder.add_waiting_edge(["a", "c"], "join")


@pytest.mark.parametrize("arguments", [(7,), (7, 9), (None,)])
def test_withheld_send_keeps_its_argument(
    checkpointer: Any, arguments: tuple[Any, ...]
) -> None:
    """Replaces scenario 114 (decision 7, D11): also where there are several."""
    graph = joined(withheld(*arguments), checkpointer)
    log = graph.run_with_thread("t", {}).state.log
    assert log == ["b", "c", *(f"join:{argument}" for argument in arguments)]


def test_withheld_send_keeps_its_argument_over_a_pause(checkpointer: Any) -> None:
    """Replaces scenario 114 (decision 7): it is stored with the boundary."""
    builder = new_builder().add_edge(START, ["a", "b"]).add_node("b", Asker())
    builder.add_node("a", go(Send("join", {"n": 1}))).add_node("join", note_sent)
    graph = joined(builder.add_waiting_edge(["a", "b"], "join"), checkpointer)
    graph.run_with_thread("t", {})
    assert graph.resume("t", Command(resume=1)).state.mark == "{'n': 1}"


def note_sent(_state: Tally, ctx: NodeContext) -> Any:
    return {"mark": str(ctx.send_arg)}


@MODES
def test_predecessor_that_ends_several_times_at_once_joins_once(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Scenario 115: N activations of one step are one arrival."""
    join = Counted(note("join"))
    builder = new_builder().add_edge(START, "split").add_node("worker", note_arg)
    builder.add_node("split", go(*(Send("worker", n) for n in (1, 2, 3))))
    builder.add_node("join", join).add_waiting_edge(["worker"], "join")
    graph = joined(builder, checkpointer, is_parallel)
    assert graph.run_with_thread("t", {}).state.total == 6
    assert join.calls == 1


def test_predecessor_that_ends_again_later_joins_again(checkpointer: Any) -> None:
    """Scenario 115: in two different steps, between which nothing of it is due."""
    join = Counted(note("join"))
    builder = add_fan(new_builder(), {"a": go("p"), "b": note("b")})
    builder.add_node("p", note("p")).add_node("c", note("c"))
    builder.add_node("d", go("p")).add_edge("b", "c").add_edge("c", "d")
    builder.add_node("join", join).add_waiting_edge(["p"], "join")
    done = joined(builder, checkpointer).run_with_thread("t", {})
    assert (done.state.log.count("p"), join.calls) == (2, 2)


def test_predecessor_that_is_due_again_is_waited_for(checkpointer: Any) -> None:
    """Decision 7: while an activation of it is pending, its arrival is not all."""

    def again(state: Tally, ctx: NodeContext) -> Command:
        rest = ctx.send_arg - 1
        more = [Send("p", rest)] if rest else []
        return Command(update={"log": ["p"]}, goto=[*more, "join"])

    builder = new_builder().add_node("start", go(Send("p", 3))).add_node("p", again)
    builder.add_edge(START, "start").add_node("join", note("join"))
    builder.add_waiting_edge(["p"], "join")
    done = joined(builder, checkpointer).run_with_thread("t", {})
    assert done.state.log == ["p", "p", "p", "join"]


def never(checkpointer: Any) -> Any:
    """Two predecessors, of which a router takes only one."""
    builder = new_builder().add_node("pick", note("pick")).add_edge(START, "pick")
    builder.add_conditional_edges("pick", lambda _s: "a", ["a", "b"])
    for name in ("a", "b"):
        builder.add_node(name, note(name))
    builder.add_node("join", note("join")).add_node("k", note("k"))
    builder.add_waiting_edge(["a", "b"], "join").add_edge("join", "k")
    return joined(builder, checkpointer)


def test_join_that_can_never_fire_fails_the_run(checkpointer: Any) -> None:
    """Replaces scenario 116 (decision 7, D12); PF-02: it names who is missing."""
    graph = never(checkpointer)
    with pytest.raises(JoinUnsatisfiedError, match=r"'join'.*\bb\b") as failed:
        graph.run_with_thread("t", {})
    assert failed.value.code == "graph.join_unsatisfied"
    run = checkpointer.find_thread_run("t")
    assert (str(run.status), run.error["node"]) == ("failed", "join")
    head = graph.get_state("t")
    assert head.metadata["failed_node"] == "join"
    assert head.metadata["error"]["code"] == "graph.join_unsatisfied"
    assert head.values.log == ["pick", "a"]


def test_join_goes_on_once_the_missing_node_is_marked_done(checkpointer: Any) -> None:
    """Replaces scenario 116 (decisions 5, 7): the way out that the error names."""
    graph = never(checkpointer)
    with pytest.raises(JoinUnsatisfiedError):
        graph.run_with_thread("t", {})
    with pytest.raises(ResumeError):
        graph.retry("t")
    graph.update_state("t", {"log": ["by hand"]}, as_node="b")
    assert graph.get_state("t").metadata["failed_node"] is None
    done = graph.retry("t")
    assert done.state.log == ["pick", "a", "by hand", "join", "k"]


def test_arrival_from_outside_does_not_open_a_join(checkpointer: Any) -> None:
    """Scenario 117: the outsider reaches it first, and it waits for the required."""
    builder = add_fan(new_builder(), {"a": note("a"), "out": go("join")})
    builder.add_node("b", note("b")).add_edge("a", "b").add_node("join", note("join"))
    graph = joined(builder.add_waiting_edge(["b"], "join"), checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["a", "b", "join"]


def test_next_pass_of_a_loop_starts_clean(checkpointer: Any) -> None:
    """Replaces scenario 118 (decision 7, D21): what came twice is not kept over.

    In the first pass w, v and w again reach the join, in the second v alone.
    """
    builder = new_builder().add_edge(START, "head").add_node("join", _pass)
    builder.add_node("head", _begin).add_node("v", note("v")).add_node("w", note_arg)
    builder.add_waiting_edge(["v", "w"], "join")
    builder.add_conditional_edges(
        "join", lambda s: END if s.total > 10 else "again", {"again": "head"}
    )
    graph = joined(builder, checkpointer)
    with pytest.raises(JoinUnsatisfiedError, match="w did not arrive"):
        graph.run_with_thread("t", {})
    assert graph.get_state("t").values.log.count("join") == 1


def _begin(state: Tally) -> Command:
    first = "join" not in state.log
    return Command(goto=[Send("w", 1), "v", Send("w", 2)] if first else ["v"])


def _pass(_state: Tally) -> Any:
    return {"log": ["join"]}


@pytest.mark.parametrize("items", [[], [3], [3, 1, 2]])
@MODES
def test_fan_out_over_a_list_joins_once(
    items: list[int], checkpointer: Any, is_parallel: bool
) -> None:
    """PF-11: a list without items as well, and the run completes."""
    join = Counted(lambda state: {"mark": f"joined {state.log}"})
    builder = new_builder().add_edge(START, "split").add_node("worker", note_arg)
    builder.add_command_node(
        "split", go(*(Send("worker", n) for n in items)), destinations=["worker"]
    )
    builder.add_node("join", join).add_waiting_edge(["worker"], "join")
    graph = joined(builder, checkpointer, is_parallel)
    expected = [f"worker:{n}" for n in items]
    assert graph.run_with_thread("t", {}).state.mark == f"joined {expected}"
    assert join.calls == 1


def test_successor_of_a_quick_branch_waits_for_the_step(checkpointer: Any) -> None:
    """PF-16: D comes after C, by the barrier, whichever of its siblings was quick."""
    builder = add_fan(new_builder(), {"b": note("b"), "c": note("c")})
    builder.add_node("d", lambda state: {"mark": ",".join(state.log)})
    graph = joined(builder.add_edge("b", "d"), checkpointer, is_parallel=True)
    assert graph.run_with_thread("t", {}).state.mark == "b,c"


def test_loser_of_two_questions_is_closed_by_hand(checkpointer: Any) -> None:
    """PF-13: there is no join of any; marking the loser as done closes its question.

    Then the node behind both runs once, and a late answer is refused.
    """
    join = Counted(note("join"))
    builder = add_fan(new_builder(), {"a": Asker(), "b": Asker()})
    builder.add_node("join", join).add_edge("a", "join").add_edge("b", "join")
    graph = joined(builder, checkpointer, is_parallel=True)
    _first, loser = graph.run_with_thread("t", {}).interrupts
    paused = graph.resume("t", Command(resume=1))
    assert (paused.interrupts[0].id, join.calls) == (loser.id, 0)
    graph.update_state("t", {}, as_node="b")
    assert graph.retry("t").state.log == ["a=1", "join"]
    assert (join.calls, graph.get_state("t").pending_interrupts) == (1, [])
    with pytest.raises(ResumeError):
        graph.resume("t", Command(answers={loser.id: 2}))
