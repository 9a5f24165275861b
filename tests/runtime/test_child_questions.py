"""Questions that a child graph asks: who gets the answer, and what runs again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import (
    Command,
    Interrupt,
    NodeContext,
    ResumeTarget,
    RunStatus,
    shared_subgraph,
)
from stateknot.errors import AlreadyAnsweredError, AnswerError, ResumeError
from tests.runtime.families import asking_child, child_states, line, parent_of
from tests.runtime.graphs import Asker, Counted, Tally, add_fan, new_builder, note


def test_parent_pauses_with_the_question_of_its_child(checkpointer: Any) -> None:
    """Scenario 141: the question names the child's node."""
    graph = parent_of(asking_child(), checkpointer)
    paused = graph.run_with_thread("t", {})
    assert paused.status is RunStatus.INTERRUPTED
    (question,) = paused.interrupts
    assert (question.node, question.payload) == ("ask", "ask")
    snapshot = graph.get_state("t")
    assert snapshot.metadata["interrupted_nodes"] == ["child"]
    assert snapshot.next_nodes == ["child"]
    assert [i.node for i in snapshot.pending_interrupts] == ["ask"]


def test_answer_resumes_the_child_where_it_asked(checkpointer: Any) -> None:
    """SG-02, scenario 142: c1 and c3 run once, and the parent's nodes too."""
    c1, c3 = Counted(note("c1", 1)), Counted(note("c3", 1))
    ask = Asker()
    child = line("tests.child", {"c1": c1, "ask": ask, "c3": c3})
    graph = parent_of(child, checkpointer)
    graph.run_with_thread("t", {})
    done = graph.resume("t", Command(resume=10))
    assert done.state == Tally(total=14, log=["before", "c1", "ask=10", "c3", "after"])
    assert (c1.calls, ask.calls, c3.calls) == (1, 2, 1)
    assert done.visited == ["child", "after"]
    sources = [s.metadata["source"] for s in child_states(child, graph, "t")]
    assert sources == ["input", "loop", "interrupt", "loop", "loop"]


def test_first_answer_is_not_used_for_the_second_question(checkpointer: Any) -> None:
    """SG-01: paused again, at the second question, unanswered."""
    graph = parent_of(asking_child("q1", "q2"), checkpointer)
    assert graph.run_with_thread("t", {}).interrupts[0].payload == "q1"
    again = graph.resume("t", Command(resume=1))
    assert [i.payload for i in again.interrupts] == ["q2"]
    done = graph.resume("t", Command(resume=20))
    assert done.state.log == ["before", "c1", "q1=1", "q2=20", "c3", "after"]


def test_child_run_is_one_over_its_pauses(checkpointer: Any) -> None:
    """Scenario 143: paused and completed are told with the same id."""
    graph = parent_of(asking_child(), checkpointer)
    (paused,) = graph.run_with_thread("t", {}).child_runs
    (ended,) = graph.resume("t", Command(resume=1)).child_runs
    assert paused.run_id == ended.run_id
    assert paused.checkpoint_id != ended.checkpoint_id


def forms(_state: Tally, ctx: NodeContext) -> Any:
    """Two questions of one node."""
    if not ctx.has_resume:
        return [
            Interrupt("name?", key="name"),
            Interrupt("age?", key="age", schema=int),
        ]
    return {"log": [f"{ctx.answers['name']} {ctx.answers['age']}"]}


def test_several_questions_of_a_child_are_answered_by_id(checkpointer: Any) -> None:
    graph = parent_of(line("tests.child", {"forms": forms}), checkpointer)
    paused = graph.run_with_thread("t", {})
    ids = {i.key: i.id for i in paused.interrupts}
    half = graph.resume("t", Command(answers={ids["age"]: 7}))
    assert [i.key for i in half.interrupts] == ["name"]
    done = graph.resume("t", Command(answers={ids["name"]: "Ida"}))
    assert done.state.log == ["before", "Ida 7", "after"]


def test_answer_must_fit_the_schema_of_the_child(checkpointer: Any) -> None:
    graph = parent_of(line("tests.child", {"forms": forms}), checkpointer)
    ids = {i.key: i.id for i in graph.run_with_thread("t", {}).interrupts}
    with pytest.raises(AnswerError):
        graph.resume("t", Command(answers={ids["age"]: "seven"}))


def test_answered_question_of_a_child_takes_no_second_answer(
    checkpointer: Any,
) -> None:
    graph = parent_of(asking_child("q1", "q2"), checkpointer)
    first = graph.run_with_thread("t", {}).interrupts[0].id
    graph.resume("t", Command(resume=1))
    with pytest.raises(AlreadyAnsweredError):
        graph.resume("t", Command(answers={first: 2}))


@pytest.mark.parametrize("is_parallel", [False, True])
def test_questions_of_sibling_children_stay_apart(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Replaces scenario 146's defect (D3): each answer reaches its own child."""
    child = line("tests.child", {"ask": Asker()})
    nodes = {name: shared_subgraph(child) for name in ("left", "right")}
    builder = add_fan(new_builder(), nodes).add_node("end", note("end"))
    builder.add_waiting_edge(["left", "right"], "end")
    builder = builder.with_parallel() if is_parallel else builder
    graph = builder.compile().with_checkpointer(checkpointer)
    asked = graph.run_with_thread("t", {})
    answer = 1
    while asked.is_interrupted:
        asked = graph.resume("t", Command(answers={asked.interrupts[-1].id: answer}))
        answer += 1
    expected = ["ask=2", "ask=1"] if is_parallel else ["ask=1", "ask=2"]
    assert asked.state.log == [*expected, "end"]


def test_question_three_levels_down_reaches_the_top(checkpointer: Any) -> None:
    middle = line(
        "tests.middle", {"m": note("m"), "in": shared_subgraph(asking_child())}
    )
    graph = parent_of(middle, checkpointer)
    paused = graph.run_with_thread("t", {})
    (question,) = paused.interrupts
    assert question.node == "ask"
    done = graph.resume("t", Command(answers={question.id: 5}))
    assert done.state.log == ["before", "m", "c1", "ask=5", "c3", "after"]


def test_retry_without_an_answer_pauses_again(checkpointer: Any) -> None:
    """Scenario 103 for a child: it is not started anew, and asks nothing twice."""
    graph = parent_of(asking_child(), checkpointer)
    asked = graph.run_with_thread("t", {}).interrupts[0].id
    assert [i.id for i in graph.retry("t").interrupts] == [asked]
    assert graph.resume("t", Command(resume=1)).state.log[1:3] == ["c1", "ask=1"]


def test_edit_of_the_parent_does_not_reach_into_the_child(checkpointer: Any) -> None:
    """Section 6: a paused child goes on from its own saved state."""
    graph = parent_of(asking_child(), checkpointer)
    graph.run_with_thread("t", {})
    graph.update_state("t", {"total": 100, "mark": "edited"})
    done = graph.resume("t", Command(resume=10))
    assert (done.state.total, done.state.mark) == (114, "edited")


def test_question_of_a_child_without_any_store_is_an_error() -> None:
    """Scenario 147: nobody could answer it."""
    with pytest.raises(ResumeError, match="checkpointer"):
        parent_of(asking_child()).run({})


def expiring(_state: Tally, ctx: NodeContext) -> Any:
    if not ctx.has_resume:
        return Interrupt("?", expires_in=timedelta(0), default="late", id="q")
    return {"log": [f"answer {ctx.resume}"]}


def test_default_answers_a_question_of_a_child(checkpointer: Any) -> None:
    """Its deadline holds for the parent's form of the question, too."""
    graph = parent_of(line("tests.child", {"ask": expiring}), checkpointer)
    graph.run_with_thread("t", {})
    assert graph.resume("t").state.log == ["before", "answer late", "after"]


def test_resume_from_the_pause_takes_another_answer(checkpointer: Any) -> None:
    """Decision 10: a branch from an older boundary takes the child along (D2)."""
    c1 = Counted(note("c1", 1))
    child = line("tests.child", {"c1": c1, "ask": Asker(), "c3": note("c3")})
    graph = parent_of(child, checkpointer)
    pause = graph.run_with_thread("t", {}).checkpoint_id
    graph.resume("t", Command(resume=1))
    target = ResumeTarget.checkpoint(pause)
    done = graph.resume_from("t", target, Command(resume=2))
    assert done.state.log == ["before", "c1", "ask=2", "c3", "after"]
    assert c1.calls == 1


def test_resume_before_the_child_runs_it_anew(checkpointer: Any) -> None:
    c1 = Counted(note("c1", 1))
    graph = parent_of(line("tests.child", {"c1": c1}), checkpointer)
    graph.run_with_thread("t", {})
    before = graph.get_state_history("t")[2]
    assert before.next_nodes == ["child"]
    target = ResumeTarget.checkpoint(before.config["checkpoint_id"])
    assert graph.resume_from("t", target).state.total == 3
    assert c1.calls == 2


def test_fork_of_a_paused_thread_takes_the_child_along(checkpointer: Any) -> None:
    """Replaces scenario 148 (D2): both threads are answered, each for itself."""
    c1 = Counted(note("c1", 1))
    child = line("tests.child", {"c1": c1, "ask": Asker(), "c3": note("c3")})
    graph = parent_of(child, checkpointer)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "fork")
    assert graph.resume("fork", Command(resume=2)).state.log[1:3] == ["c1", "ask=2"]
    assert graph.resume("t", Command(resume=1)).state.log[1:3] == ["c1", "ask=1"]
    assert c1.calls == 1


def test_fork_of_an_older_pause_takes_the_child_as_it_was(checkpointer: Any) -> None:
    """Decision 10 (D2): the source has gone on since; the fork has not."""
    c1 = Counted(note("c1", 1))
    child = line("tests.child", {"c1": c1, "q1": Asker("q1"), "q2": Asker("q2")})
    graph = parent_of(child, checkpointer)
    pause = graph.run_with_thread("t", {}).checkpoint_id
    graph.resume("t", Command(resume=1))
    graph.resume("t", Command(resume=2))
    graph.fork_state("t", "fork", pause)
    assert graph.resume("fork", Command(resume=3)).interrupts[0].payload == "q2"
    done = graph.resume("fork", Command(resume=4))
    assert done.state.log == ["before", "c1", "q1=3", "q2=4", "after"]
    assert c1.calls == 1
    assert graph.get_state("t").values.log[2:4] == ["q1=1", "q2=2"]


def test_fork_takes_grandchildren_along(checkpointer: Any) -> None:
    c1 = Counted(note("c1"))
    inner = line("tests.inner", {"c1": c1, "ask": Asker()})
    middle = line("tests.middle", {"in": shared_subgraph(inner)})
    graph = parent_of(middle, checkpointer)
    graph.run_with_thread("t", {})
    graph.fork_state("t", "fork")
    assert graph.resume("fork", Command(resume=2)).state.log[1:3] == ["c1", "ask=2"]
    assert c1.calls == 1
