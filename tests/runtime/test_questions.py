"""Questions: typed answers, keys, who may answer when, and old forms."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from stateknot import Command, Interrupt, NodeContext, RunStatus
from stateknot.errors import ResumeError
from tests.runtime.graphs import (
    Asker,
    Counted,
    Tally,
    answered,
    asking,
)


class Approval(BaseModel):
    """What a form sends."""

    approved: bool
    reason: str = ""


def typed(_state: Tally, ctx: NodeContext) -> Any:
    return answered(_state, ctx) if ctx.has_resume else Interrupt("?", schema=Approval)


def test_answer_of_a_model_is_what_was_sent(checkpointer: Any) -> None:
    """Decision 3: the handler gets JSON, and validates it as it likes."""
    graph = asking(typed, checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts[0]
    assert asked.schema["required"] == ["approved"]
    done = graph.resume("t", Command(resume={"approved": True}))
    assert done.state.mark == "{'approved': True}"


def test_answer_may_be_a_model(checkpointer: Any) -> None:
    graph = asking(typed, checkpointer)
    graph.run_with_thread("t", {})
    done = graph.resume("t", Command(resume=Approval(approved=False, reason="late")))
    assert done.state.mark == "{'approved': False, 'reason': 'late'}"


@pytest.mark.parametrize(
    "answer", [None, {}, {"approved": "perhaps"}, {"approved": True, "reason": 5}]
)
def test_answer_of_another_type_is_refused(answer: Any, checkpointer: Any) -> None:
    """Decision 3: the message names what does not fit, and nothing changes."""
    graph = asking(typed, checkpointer)
    graph.run_with_thread("t", {})
    before = graph.get_state("t")
    with pytest.raises(ResumeError, match=r"\$"):
        graph.resume("t", Command(resume=answer))
    assert graph.get_state("t") == before


def test_answer_that_has_no_json_form_is_refused(checkpointer: Any) -> None:
    """ST-05's kind: the question stays open."""
    graph = asking(Asker(), checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(Exception, match="answer to 'ask'"):
        graph.resume("t", Command(resume=object()))
    assert graph.resume("t", Command(resume=1)).state.total == 1


def ask_two(_state: Tally, ctx: NodeContext) -> Any:
    if set(ctx.answers) < {"a", "b"}:
        return [Interrupt("a?", key="a"), Interrupt("b?", key="b")]
    return {"log": [f"a={ctx.answers['a']}", f"b={ctx.answers['b']}"]}


def test_questions_of_one_node_have_ids_of_their_own(checkpointer: Any) -> None:
    """IH-04: b is answered before a; each key gets its own value."""
    ask = Counted(lambda _state: None)

    def counted(state: Tally, ctx: NodeContext) -> Any:
        ask(state)
        return ask_two(state, ctx)

    graph = asking(counted, checkpointer)
    a, b = graph.run_with_thread("t", {}).interrupts
    again = asking(counted, checkpointer)
    assert again.get_state("t").pending_interrupts == [a, b]
    again.resume("t", Command(answers={b.id: 2}))
    assert ask.calls == 1
    assert again.resume("t", Command(answers={a.id: 1})).state.log[:2] == ["a=1", "b=2"]


def test_bare_value_answers_the_deciding_question(checkpointer: Any) -> None:
    """IH-03 in Python: the first; the other stays open and is named by its id."""
    graph = asking(ask_two, checkpointer)
    _, b = graph.run_with_thread("t", {}).interrupts
    paused = graph.resume("t", Command(resume="first"))
    assert [question.id for question in paused.interrupts] == [b.id]
    done = graph.resume("t", Command(resume="second"))
    assert done.state.log[:2] == ["a=first", "b=second"]


def test_unknown_question_lists_the_open_ones(checkpointer: Any) -> None:
    """IH-03: the error says which ids there are."""
    graph = asking(ask_two, checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts
    with pytest.raises(ResumeError) as refused:
        graph.resume("t", Command(answers={"nothing": 1}))
    assert all(question.id in str(refused.value) for question in asked)


def test_wrong_answer_in_a_map_stores_none_of_it(checkpointer: Any) -> None:
    """One transaction: the good answer is not kept beside the bad one."""
    graph = asking(ask_two, checkpointer)
    a, b = graph.run_with_thread("t", {}).interrupts
    with pytest.raises(ResumeError):
        graph.resume("t", Command(answers={a.id: 1, "nothing": 2}))
    assert graph.get_state("t").pending_interrupts == [a, b]


def test_question_keeps_the_id_its_author_gave(checkpointer: Any) -> None:
    def named(_state: Tally, ctx: NodeContext) -> Any:
        return answered(_state, ctx) if ctx.has_resume else Interrupt("?", id="form-7")

    graph = asking(named, checkpointer)
    (asked,) = graph.run_with_thread("t", {}).interrupts
    assert asked.id == "form-7"
    assert graph.resume("t", Command(answers={"form-7": 1})).state.mark == "1"


def test_node_that_asks_three_times_keeps_its_answers(checkpointer: Any) -> None:
    """IH-08, decision 3: by key, each asked inside the same node when it is due."""
    keys = ("who", "when", "where")

    def interview(_state: Tally, ctx: NodeContext) -> Any:
        for key in keys:
            if key not in ctx.answers:
                return Interrupt(f"{key}?", key=key)
        return {"log": [ctx.answers[key] for key in keys]}

    graph = asking(interview, checkpointer)
    paused = graph.run_with_thread("t", {})
    for key in keys:
        assert [question.key for question in paused.interrupts] == [key]
        head = graph.get_state("t")
        assert (head.next_nodes, len(head.pending_interrupts)) == (["ask"], 1)
        paused = graph.resume("t", Command(resume=f"{key}!"))
    assert paused.state.log == ["who!", "when!", "where!", "after"]


def test_broad_except_swallows_no_question(checkpointer: Any) -> None:
    """IH-09: a question is returned, so there is nothing to catch."""
    guarded: list[str] = []

    def wrapped(state: Tally, ctx: NodeContext) -> Any:
        try:
            if not ctx.has_resume:
                return Interrupt("may I?")
            guarded.append("done")
        except Exception:  # noqa: BLE001 - the very thing that is tested
            return {"mark": "swallowed"}
        return answered(state, ctx)

    graph = asking(wrapped, checkpointer)
    assert graph.run_with_thread("t", {}).status is RunStatus.INTERRUPTED
    assert guarded == []
    assert graph.resume("t", Command(resume="yes")).state.mark == "'yes'"


def test_node_runs_again_from_its_start(checkpointer: Any) -> None:
    """IH-16: work before the question is done once with it and once with its answer."""
    work: list[bool] = []

    def works(state: Tally, ctx: NodeContext) -> Any:
        work.append(ctx.has_resume)
        return answered(state, ctx) if ctx.has_resume else Interrupt("?")

    graph = asking(works, checkpointer)
    graph.run_with_thread("t", {})
    graph.resume("t", Command(resume=1))
    assert work == [False, True]
