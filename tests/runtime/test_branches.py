"""Resuming from an older checkpoint: a branch that the head follows."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    Command,
    Interrupt,
    NodeContext,
    RecursionPolicy,
    ResumeTarget,
    RunStatus,
    Timer,
)
from stateknot.errors import (
    NodeFailedError,
    RecursionLimitError,
    ResumeError,
    StaleCheckpointError,
    ThreadBusyError,
)
from stateknot.runtime.admission import find_standing, reopen
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    Tally,
    add_fan,
    add_line,
    compiled,
    line,
    new_builder,
    note,
)

if TYPE_CHECKING:
    from stateknot import CompiledGraph, GraphExecution


def at_step(graph: CompiledGraph, step: int) -> str:
    """The id of the checkpoint of that step on the newest branch."""
    found = [s for s in graph.get_state_history("t") if s.metadata["step"] == step]
    checkpoint_id: str = found[0].config["checkpoint_id"]
    return checkpoint_id


def resume_from(graph: CompiledGraph, checkpoint_id: str, **answer: Any) -> Any:
    command = Command(**answer)
    return graph.resume_from("t", ResumeTarget.checkpoint(checkpoint_id), command)


def test_resume_from_the_first_boundary_replays_the_rest(checkpointer: Any) -> None:
    """Scenario 125: b and c run again, to 3."""
    graph = line(checkpointer)
    branch = resume_from(graph, at_step(graph, 1))
    assert (branch.visited, branch.state.total) == (["b", "c"], 3)
    assert branch.status is RunStatus.COMPLETED


def test_branch_hangs_on_the_checkpoint_it_began_at(checkpointer: Any) -> None:
    """Scenario 126: two new records, and the history is that of the branch."""
    graph = line(checkpointer)
    whole, start = graph.get_state_history("t"), at_step(graph, 1)
    resume_from(graph, start)
    branch = graph.get_state_history("t")
    assert branch[2:] == whole[2:]
    assert branch[1].parent_config == whole[2].config
    assert [s.metadata["step"] for s in branch] == [3, 2, 1, 0]
    old_ids = {s.config["checkpoint_id"] for s in whole[:2]}
    assert old_ids.isdisjoint(s.config["checkpoint_id"] for s in branch)


def test_branch_leaves_the_old_one_as_it_was(checkpointer: Any) -> None:
    """Scenario 126, TT-01: every old record is read as before; it has a history."""
    graph = line(checkpointer)
    whole = graph.get_state_history("t")
    resume_from(graph, at_step(graph, 0))
    for old in whole:
        assert graph.get_state("t", old.config["checkpoint_id"]) == old
    last = whole[0].config["checkpoint_id"]
    assert graph.get_state_history("t", before=last) == whole[1:]


def test_branch_of_a_branch(checkpointer: Any) -> None:
    """Each branch reads its own state, whatever its neighbours wrote."""
    graph = line(checkpointer)
    first = at_step(graph, 2)
    resume_from(graph, at_step(graph, 1))
    second = at_step(graph, 2)
    resume_from(graph, second)
    done = resume_from(graph, first)
    assert (done.visited, done.state.log) == (["c"], ["a", "b", "c"])
    assert graph.get_state_history("t")[1].config["checkpoint_id"] == first


class Decided:
    """A thread over ask and after, paused once and then ended with "yes"."""

    def __init__(self, checkpointer: Any) -> None:
        self.asker = Asker("go on?")
        builder = add_line(new_builder(), "before").add_node("ask", self.asked)
        builder.add_node("after", note("after")).add_sequence("before", "ask", "after")
        self.graph = compiled(builder, checkpointer)
        self.paused = self.graph.run_with_thread("t", {})
        self.done = self.graph.resume("t", Command(resume="yes"))

    def asked(self, _state: Any, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return Interrupt("go on?")
        return {"mark": ctx.resume}


def test_replay_from_before_a_question_asks_it_again(checkpointer: Any) -> None:
    """TT-01: the answer of the other branch is not used."""
    thread = Decided(checkpointer)
    branch = resume_from(thread.graph, at_step(thread.graph, 1))
    assert (branch.status, branch.state.mark) == (RunStatus.INTERRUPTED, "")
    assert branch.interrupts[0].id != thread.paused.interrupts[0].id
    assert thread.graph.resume("t", Command(resume="no")).state.mark == "no"


def test_answer_given_with_the_branch(checkpointer: Any) -> None:
    """TT-01: from the question's own checkpoint, with another answer at once."""
    thread = Decided(checkpointer)
    branch = resume_from(thread.graph, thread.paused.checkpoint_id, resume="no")
    assert (branch.state.mark, branch.visited) == ("no", ["ask", "after"])
    old = thread.graph.get_state("t", thread.done.checkpoint_id)
    assert old.values.mark == "yes"
    assert thread.graph.get_state("t").values.mark == "no"


def test_edit_follows_the_branch(checkpointer: Any) -> None:
    """TT-01: the head moved, so what comes next goes to the new branch."""
    thread = Decided(checkpointer)
    branch = resume_from(thread.graph, thread.paused.checkpoint_id)
    thread.graph.update_state("t", {"log": ["edited"]})
    head = thread.graph.get_state("t")
    assert head.parent_config["checkpoint_id"] == branch.checkpoint_id
    done = thread.graph.resume("t", Command(resume="no"))
    assert (done.state.mark, done.state.log[-2:]) == ("no", ["edited", "after"])


def test_form_of_the_old_branch_is_refused(checkpointer: Any) -> None:
    """Decision 3: its question was closed when the branch began."""
    thread = Decided(checkpointer)
    old = thread.paused.interrupts[0].id
    resume_from(thread.graph, thread.paused.checkpoint_id)
    with pytest.raises(ResumeError, match=old):
        thread.graph.resume("t", Command(answers={old: "maybe"}))
    assert thread.graph.get_state("t").values.mark == ""


def test_branch_from_an_older_run(checkpointer: Any) -> None:
    """That run is reopened, and the thread's head follows it."""
    graph = line(checkpointer)
    old_run, start = checkpointer.find_thread_run("t").id, at_step(graph, 1)
    newer = graph.run_with_thread("t", {"total": 100})
    branch = resume_from(graph, start)
    assert (branch.run_id, branch.state.total) == (old_run, 3)
    assert graph.get_state("t").config["checkpoint_id"] == branch.checkpoint_id
    assert graph.get_state("t", newer.checkpoint_id).values.total == 103


def test_branch_while_another_run_holds_the_thread(checkpointer: Any) -> None:
    """Decision 11: refused, and the open question stays where it was."""
    thread = Decided(checkpointer)
    start = thread.done.checkpoint_id
    paused = thread.graph.run_with_thread("t", {})
    before = thread.graph.get_state("t")
    with pytest.raises(ThreadBusyError) as busy:
        resume_from(thread.graph, thread.paused.checkpoint_id)
    assert busy.value.run_id == paused.run_id
    assert thread.graph.get_state("t") == before
    assert start != before.config["checkpoint_id"]


def test_branch_while_the_run_itself_is_paused(checkpointer: Any) -> None:
    """The same run goes elsewhere: what it asked there is closed."""
    thread = Decided(checkpointer)
    paused = resume_from(thread.graph, thread.paused.checkpoint_id)
    branch = resume_from(thread.graph, at_step(thread.graph, 0))
    assert branch.run_id == paused.run_id
    (asked,) = thread.graph.get_state("t").pending_interrupts
    assert asked.id == branch.interrupts[0].id
    assert len(checkpointer.list_waits("t")) == 1


def test_branch_out_of_a_wait(checkpointer: Any) -> None:
    """Decision 4: what the run waits for elsewhere does not hold a branch."""
    builder = add_line(new_builder(), "a").add_node("b", sleeps)
    builder.add_node("c", note("c")).add_sequence("a", "b", "c")
    graph = compiled(builder, checkpointer)
    assert graph.run_with_thread("t", {}).status is RunStatus.WAITING
    branch = resume_from(graph, at_step(graph, 0))
    assert (branch.status, branch.visited) == (RunStatus.WAITING, ["a", "b"])
    assert graph.retry("t").state.log == ["a", "c"]


def sleeps(_state: Any) -> Any:
    return Timer(timedelta(hours=1))


def test_value_handed_to_a_failure_asks_nothing_in_a_branch(checkpointer: Any) -> None:
    """Scenario 104 came before it: a handed value is no question."""
    flaky = Flaky("a", 2)
    graph = compiled(add_fan(new_builder(), {"a": flaky}), checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    with pytest.raises(NodeFailedError):
        graph.resume("t", Command(resume="go"))
    branch = resume_from(graph, str(failed.value.checkpoint_id))
    assert (branch.status, branch.state.log) == (RunStatus.COMPLETED, ["a"])


def test_answer_outlives_a_limit_right_behind_a_branch(checkpointer: Any) -> None:
    """Decision 3: a resume that wrote no record yet begins no second branch."""
    thread = Decided(checkpointer)
    limited = thread.graph.with_recursion_policy(RecursionPolicy(max_total_steps=1))
    with pytest.raises(RecursionLimitError):
        resume_from(limited, thread.paused.checkpoint_id, resume="no")
    done = thread.graph.resume("t")
    assert (done.status, done.state.mark) == (RunStatus.COMPLETED, "no")


def test_second_run_begins_a_lineage_on_the_first(checkpointer: Any) -> None:
    """Replaces scenario 134 (decision 11): its input record names the old head."""
    graph = line(checkpointer)
    first = graph.get_state_history("t")
    graph.run_with_thread("t", {"total": 10})
    history = graph.get_state_history("t")
    assert [s.values.total for s in history] == [13, 12, 11, 10, 3, 2, 1, 0]
    assert history[4:] == first
    assert history[3].values.log == []


def test_second_run_is_refused_while_the_first_asks(checkpointer: Any) -> None:
    """Replaces scenario 134 (decision 11): a question is not dropped silently."""
    graph = compiled(add_fan(new_builder(), {"a": Asker()}), checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts
    with pytest.raises(ThreadBusyError):
        graph.run_with_thread("t", {})
    assert graph.get_state("t").pending_interrupts == asked


def test_retry_that_comes_second_is_refused(checkpointer: Any) -> None:
    """IH-01's kind: who looked before the other's retry ended changes nothing."""
    last = Counted(note("b"))
    builder = add_fan(new_builder(), {"a": Flaky("a")}).add_node("b", last)
    graph = compiled(builder.add_edge("a", "b"), checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    late = find_standing(checkpointer, "t", ResumeTarget.latest(), graph.config)
    done: GraphExecution = graph.retry("t")
    with pytest.raises(StaleCheckpointError), checkpointer.atomic():
        reopen(checkpointer, late, Command(), graph.config, digest=None)
    assert (checkpointer.find_run(done.run_id).status, last.calls) == ("completed", 1)


def test_question_of_the_run_left_behind_is_closed(checkpointer: Any) -> None:
    """Decision 11: a failed run that asked is left for an older one; it says so."""
    graph = compiled(
        add_fan(new_builder(), {"a": Flaky("a", 9), "b": Asker()}).with_parallel(),
        checkpointer,
    )
    runs = []
    for _ in range(2):
        with pytest.raises(NodeFailedError) as failed:
            graph.run_with_thread("t", {})
        runs.append(failed.value)
    (left,) = graph.get_state("t").pending_interrupts
    graph.update_state("t", {})
    with pytest.raises(NodeFailedError):
        resume_from(graph, str(runs[0].checkpoint_id))
    (asked,) = graph.get_state("t").pending_interrupts
    assert asked.id != left.id
    assert [wait.id for wait in checkpointer.list_waits("t")] == [asked.id]


@pytest.mark.parametrize("is_asked_first", [True, False])
def test_branch_keeps_the_order_of_answers_and_values(
    checkpointer: Any, *, is_asked_first: bool
) -> None:
    """A handler is given the newest of both, as before the branch."""
    acts = ["ask", "fail", "fail"] if is_asked_first else ["fail", "ask", "fail"]
    seen: list[Any] = []

    def handler(_state: Tally, ctx: NodeContext) -> Any:
        seen.append(ctx.resume)
        act = acts.pop(0) if acts else "go on"
        if act == "fail":
            raise ValueError("told to fail")
        return Interrupt("well?") if act == "ask" else None

    graph = compiled(add_fan(new_builder(), {"a": handler}), checkpointer)
    for call in (
        lambda: graph.run_with_thread("t", {}),
        lambda: graph.resume("t", Command(resume="first")),
        lambda: graph.resume("t", Command(resume="second")),
    ):
        with contextlib.suppress(NodeFailedError):
            call()
    graph.fork_state("t", "u")
    graph.resume("u")
    assert seen == [None, "first", "second", "second"]
