"""Questions of one node, and the resumes that answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    START,
    Command,
    Interrupt,
    NodeContext,
    ResumeTarget,
    RunStatus,
)
from stateknot.errors import NodeFailedError, ResumeError
from stateknot.runtime.events import CollectingSink
from tests.runtime.graphs import (
    Asker,
    Flaky,
    Tally,
    add_fan,
    add_line,
    new_builder,
    note,
    sources,
)

if TYPE_CHECKING:
    from stateknot import CompiledGraph


def asking(handler: Any, checkpointer: Any = None) -> CompiledGraph:
    """A graph of one node that asks, named `ask`."""
    graph = add_fan(new_builder(), {"ask": handler}).compile()
    return graph if checkpointer is None else graph.with_checkpointer(checkpointer)


def bump(_state: Tally, ctx: NodeContext) -> Any:
    return {"total": ctx.resume["bump"]} if ctx.has_resume else Interrupt("by?")


def test_answer_resumes_the_node_that_asked(checkpointer: Any) -> None:
    """Scenario 89: a mapping is one value."""
    graph = asking(bump, checkpointer)
    paused = graph.run_with_thread("t", {"total": 10})
    assert (paused.status, paused.is_interrupted) == (RunStatus.INTERRUPTED, True)
    done = graph.resume("t", Command(resume={"bump": 5}))
    assert (done.status, done.state.total) == (RunStatus.COMPLETED, 15)
    assert (done.run_id, done.interrupts) == (paused.run_id, [])


def before_and_after(checkpointer: Any) -> CompiledGraph:
    builder = add_line(new_builder(), "before").add_node("ask", Asker())
    builder.add_node("after", note("after")).add_sequence("before", "ask", "after")
    return builder.compile().with_checkpointer(checkpointer)


def test_pause_lies_between_earlier_and_later_work(checkpointer: Any) -> None:
    """Scenario 90."""
    graph = before_and_after(checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["before"]
    done = graph.resume("t", Command(resume=2))
    assert done.state.log == ["before", "ask=2", "after"]
    assert done.visited == ["ask", "after"]


def test_question_without_a_checkpointer_is_a_resume_error() -> None:
    """Scenario 91: nobody could answer it."""
    with pytest.raises(ResumeError, match="checkpointer"):
        asking(bump).run({})


def test_question_without_a_thread_gets_one(checkpointer: Any) -> None:
    """Replaces scenario 91 (decision 8): a thread id is made up."""
    graph = asking(bump, checkpointer)
    paused = graph.run({})
    assert paused.thread_id
    done = graph.resume(paused.thread_id, Command(resume={"bump": 1}))
    assert done.state.total == 1


def test_resume_without_a_checkpointer_is_refused() -> None:
    """Scenario 92."""
    with pytest.raises(ResumeError, match="no checkpointer"):
        asking(bump).resume("t", Command(resume=1))


def test_resume_tells_what_it_restored(checkpointer: Any) -> None:
    """Scenario 93: restored once, and not saved again."""
    graph, sink = asking(bump, checkpointer), CollectingSink()
    loaded = graph.run_with_thread("t", {}).checkpoint_id
    graph.with_event_sink(sink).resume("t", Command(resume={"bump": 1}))
    told = [
        (e.kind, e.data["checkpoint"]) for e in sink.events if "checkpoint" in e.data
    ]
    assert told[0] == ("checkpoint.restored", loaded)
    assert ("checkpoint.saved", loaded) not in told
    assert sink.kinds.count("checkpoint.restored") == 1


def test_history_over_a_pause_is_one_line(checkpointer: Any) -> None:
    """Scenario 94, with the input record of decision 8: five records, one root."""
    graph = before_and_after(checkpointer)
    graph.run_with_thread("t", {})
    graph.resume("t", Command(resume=2))
    history = graph.get_state_history("t")
    parents = [s.parent_config and s.parent_config["checkpoint_id"] for s in history]
    ids = [s.config["checkpoint_id"] for s in history]
    assert parents == [*ids[1:], None]
    assert sources(graph, "t") == ["input", "loop", "interrupt", "loop", "loop"]


def test_answer_reaches_a_question_of_a_foreign_name(checkpointer: Any) -> None:
    """Replaces scenario 99 (decision 3): it is bound to the activation."""

    def relay(_state: Tally, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return Interrupt("from further in", node="child.ask")
        return {"log": [f"got {ctx.resume}"]}

    graph = asking(relay, checkpointer)
    assert graph.run_with_thread("t", {}).interrupts[0].node == "child.ask"
    assert graph.resume("t", Command(resume="yes")).state.log == ["got yes"]


def test_only_the_value_of_a_resume_is_honoured(checkpointer: Any) -> None:
    """Scenario 102: not its update, not its goto."""
    builder = add_fan(new_builder(), {"ask": Asker()}).add_node("b", note("b"))
    graph = builder.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    command = Command(resume=3, update={"mark": "x"}, goto="b")
    assert graph.resume("t", command).state == Tally(total=3, log=["ask=3"])


def test_null_is_an_answer(checkpointer: Any) -> None:
    """Scenario 102: it differs from no answer."""
    graph = asking(Asker(), checkpointer)
    graph.run_with_thread("t", {})
    assert graph.resume("t", Command(resume=None)).state.log == ["ask=None"]


def test_retry_without_an_answer_stays_at_the_question(checkpointer: Any) -> None:
    """Replaces scenario 103 (IH-05): a new record, and the node does not run again."""
    asker = Asker()
    graph = asking(asker, checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts[0]
    again = graph.retry("t")
    assert [question.id for question in again.interrupts] == [asked.id]
    assert (again.status, asker.calls) == (RunStatus.INTERRUPTED, 1)
    assert sources(graph, "t") == ["input", "interrupt", "interrupt"]
    assert graph.resume("t", Command(resume=4)).state.log == ["ask=4"]


def test_value_at_a_failure_reaches_every_pending_node(checkpointer: Any) -> None:
    """Scenario 104: the failed one, one behind it, and a successor that never ran."""
    flaky = Flaky("b")

    def told(_state: Tally, ctx: NodeContext) -> Any:
        return {"log": [f"{ctx.node_id}={ctx.resume if ctx.has_resume else '-'}"]}

    def failing(state: Tally, ctx: NodeContext) -> Any:
        flaky(state)
        return told(state, ctx)

    builder = add_fan(new_builder(), {"a": note("a"), "b": failing, "c": told})
    builder.add_node("after_a", told).add_edge("a", "after_a")
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    done = graph.resume("t", Command(resume="go"))
    assert done.state.log == ["a", "after_a=go", "b=go", "c=go"]


def test_completed_thread_cannot_be_resumed(checkpointer: Any) -> None:
    """Scenario 105: refused, after it was told what was restored."""
    graph, sink = asking(note("a"), checkpointer), CollectingSink()
    graph.run_with_thread("t", {})
    with pytest.raises(ResumeError, match="no pending nodes"):
        graph.with_event_sink(sink).resume("t")
    assert sink.kinds == ["checkpoint.restored"]


def test_unknown_thread_cannot_be_resumed(checkpointer: Any) -> None:
    """Scenario 106: the error names it."""
    with pytest.raises(ResumeError, match="'nowhere'"):
        asking(bump, checkpointer).resume("nowhere", Command(resume=1))


def test_unknown_checkpoint_cannot_be_resumed(checkpointer: Any) -> None:
    """Scenario 106: the error names thread and checkpoint."""
    graph = asking(bump, checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(ResumeError, match=r"'no-such-id'.*'t'"):
        graph.resume_from("t", ResumeTarget.checkpoint("no-such-id"))


def test_answer_that_does_not_fit_is_refused(checkpointer: Any) -> None:
    """Decision 3: the question stays open, and the node does not run."""
    calls = []

    def handler(_state: Tally, ctx: NodeContext) -> Any:
        calls.append(ctx.has_resume)
        return {"total": ctx.resume} if ctx.has_resume else Interrupt("?", schema=int)

    graph = asking(handler, checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(ResumeError, match="does not fit"):
        graph.resume("t", Command(resume="many"))
    assert len(graph.get_state("t").pending_interrupts) == 1
    assert graph.resume("t", Command(resume=3)).state.total == 3
    assert calls == [False, True]


def test_node_asks_again_after_an_answer(checkpointer: Any) -> None:
    """Decision 3, IH-08: the second pause is as open as the first."""

    def twice(_state: Tally, ctx: NodeContext) -> Any:
        if ctx.resume == "second":
            return {"log": ["done"]}
        return Interrupt("again?" if ctx.has_resume else "first?")

    graph = asking(twice, checkpointer)
    graph.run_with_thread("t", {})
    paused = graph.resume("t", Command(resume="first"))
    assert [question.payload for question in paused.interrupts] == ["again?"]
    assert graph.get_state("t").next_nodes == ["ask"]
    assert graph.resume("t", Command(resume="second")).state.log == ["done"]


def two_questions(_state: Tally, ctx: NodeContext) -> Any:
    if not ctx.has_resume:
        return [Interrupt("who?", key="who"), Interrupt("when?", key="when")]
    return {"log": [f"{ctx.answers['who']} at {ctx.answers['when']}"]}


def test_node_reads_several_answers_by_key(checkpointer: Any) -> None:
    """Decision 3: and does not run before it has all of them."""
    builder = new_builder().add_edge(START, "ask").add_node("ask", two_questions)
    graph = builder.compile().with_checkpointer(checkpointer)
    who, when = graph.run_with_thread("t", {}).interrupts
    paused = graph.resume("t", Command(answers={when.id: "noon"}))
    assert [question.id for question in paused.interrupts] == [who.id]
    done = graph.resume("t", Command(answers={who.id: "Ada"}))
    assert done.state.log == ["Ada at noon"]
