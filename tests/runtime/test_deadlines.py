"""Questions that expire: the default answer, sweeps, and answers that come late."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import Command, Interrupt, NodeContext, ResumeTarget, RunStatus
from stateknot.errors import AlreadyAnsweredError, NodeFailedError
from stateknot.registry import register
from stateknot.runtime.admission import DEADLINE, answer_due
from stateknot.runtime.worker import drive_run
from tests.runtime.graphs import PATIENCE, Tally, add_fan, new_builder, note

if TYPE_CHECKING:
    from stateknot import CompiledGraph

HOUR = timedelta(hours=1)
LATER = timedelta(minutes=61)


def expiring(_state: Tally, ctx: NodeContext) -> Any:
    if ctx.has_resume:
        return {"log": [f"{ctx.node_id}={ctx.resume}"]}
    return Interrupt("approve?", expires_in=HOUR, default="reject")


def compiled(store: Any, **nodes: Any) -> CompiledGraph:
    nodes = nodes or {"ask": expiring}
    graph = add_fan(new_builder("tests.deadlines"), nodes).with_parallel().compile()
    return graph.with_checkpointer(store)


def due(time: Any) -> int:
    with time.store.atomic():
        return answer_due(time.store, "t")


def test_question_stays_open_until_its_deadline(time: Any) -> None:
    """IH-15: 59 minutes are not an hour."""
    graph = compiled(time.store)
    graph.run_with_thread("t", {})
    time.pass_by(timedelta(minutes=59))
    assert due(time) == 0
    assert graph.resume("t", Command(resume="approve")).state.log == ["ask=approve"]


def test_default_answers_after_the_deadline(time: Any) -> None:
    """IH-15: marked as nobody's answer, and in the journal."""
    graph = compiled(time.store)
    run_id = graph.run_with_thread("t", {}).run_id
    time.pass_by(LATER)
    assert (due(time), due(time)) == (1, 0)
    (wait,) = time.store.list_waits("t")
    assert (wait.answer, wait.answered_by) == ("reject", DEADLINE)
    told = [
        (e.kind, r.actor) for r in time.store.list_journal(run_id) for e in r.events
    ]
    assert told.count(("wait.answered", DEADLINE)) == 1
    assert graph.retry("t").state.log == ["ask=reject"]


def test_retry_behind_the_deadline_takes_the_default(time: Any) -> None:
    """IH-15: without a sweep as well."""
    graph = compiled(time.store)
    graph.run_with_thread("t", {})
    time.pass_by(LATER)
    assert graph.retry("t").state.log == ["ask=reject"]


def test_late_answer_by_id_is_refused(time: Any) -> None:
    """IH-15: the deadline counts, whether a sweep came by or not."""
    graph = compiled(time.store)
    (asked,) = graph.run_with_thread("t", {}).interrupts
    time.pass_by(LATER)
    with pytest.raises(AlreadyAnsweredError):
        graph.resume("t", Command(answers={asked.id: "approve"}))
    due(time)
    with pytest.raises(AlreadyAnsweredError, match="deadline"):
        graph.resume("t", Command(answers={asked.id: "approve"}))
    assert graph.retry("t").state.log == ["ask=reject"]


def test_late_bare_answer_is_refused(time: Any) -> None:
    """IH-15: a value without an id does not take the default's place."""
    graph = compiled(time.store)
    graph.run_with_thread("t", {})
    time.pass_by(LATER)
    with pytest.raises(AlreadyAnsweredError):
        graph.resume("t", Command(resume="approve"))
    assert graph.retry("t").state.log == ["ask=reject"]


def test_default_may_be_null(time: Any) -> None:
    """Decision 3: no default and a default of null differ."""

    def asks(_state: Tally, ctx: NodeContext) -> Any:
        if ctx.has_resume:
            return {"mark": repr(ctx.resume)}
        return Interrupt("?", expires_in=HOUR, default=None)

    graph = compiled(time.store, ask=asks)
    graph.run_with_thread("t", {})
    time.pass_by(LATER)
    assert graph.retry("t").state.mark == "None"


def test_deadline_without_a_default_is_a_failure(time: Any) -> None:
    """IH-15: it could only hold the run for ever."""
    graph = compiled(time.store, ask=lambda _s: Interrupt("?", expires_in=HOUR))
    with pytest.raises(NodeFailedError, match="default"):
        graph.run_with_thread("t", {})


def test_question_without_a_deadline_waits_on(time: Any) -> None:
    """IH-15: only what expires is answered; the run pauses for the other."""

    def patient(state: Tally, ctx: NodeContext) -> Any:
        return expiring(state, ctx) if ctx.has_resume else Interrupt("when?")

    graph = compiled(time.store, a=expiring, b=patient)
    graph.run_with_thread("t", {})
    time.pass_by(LATER)
    paused = graph.retry("t")
    assert [question.payload for question in paused.interrupts] == ["when?"]
    assert graph.resume("t", Command(resume="now")).state.log == ["a=reject", "b=now"]


def test_deadline_begins_anew_in_a_branch(time: Any) -> None:
    """TT-01: asked again, people have as long to answer as the first time."""
    graph = compiled(time.store)
    paused = graph.run_with_thread("t", {})
    time.pass_by(LATER)
    graph.retry("t")
    target = ResumeTarget.checkpoint(paused.checkpoint_id)
    assert graph.resume_from("t", target).is_interrupted
    assert due(time) == 0
    assert graph.resume("t", Command(resume="approve")).state.log == ["ask=approve"]


def test_deadline_begins_anew_in_a_fork(time: Any) -> None:
    graph = compiled(time.store)
    graph.run_with_thread("t", {})
    time.pass_by(timedelta(minutes=50))
    graph.fork_state("t", "u")
    time.pass_by(timedelta(minutes=20))
    assert graph.resume("u", Command(resume="approve")).state.log == ["ask=approve"]
    assert graph.retry("t").state.log == ["ask=reject"]


def test_closed_question_gets_no_default(time: Any) -> None:
    """IH-15: marked as done by hand, it expires in vain."""
    graph = compiled(time.store, a=expiring, b=note("b"))
    graph.run_with_thread("t", {})
    graph.update_state("t", {"mark": "by hand"}, as_node="a")
    time.pass_by(LATER)
    assert due(time) == 0
    assert graph.retry("t").state == Tally(log=["b"], mark="by hand")


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_give_one_answer() -> None:
    """IH-15: at once, in two processes; then a human answer comes late."""
    from stateknot.models import JournalEvent
    from stateknot.runtime.recovery import sweep
    from tests.runtime.moving_time import DatabaseTime

    time = DatabaseTime()
    graph = register(compiled(time.store))
    paused = graph.run_with_thread("t", {})
    time.pass_by(LATER)

    def sweeps() -> Any:
        try:
            return sweep()
        finally:
            time.store.thread_finished()

    with ThreadPoolExecutor(2) as pool:
        reports = [f.result(PATIENCE) for f in [pool.submit(sweeps) for _ in "ab"]]
    assert paused.run_id in {run_id for report in reports for run_id in report.run_ids}
    assert [report.failed for report in reports] == [(), ()]
    assert JournalEvent.objects.filter(actor=DEADLINE).count() == 1
    with pytest.raises(AlreadyAnsweredError):
        graph.resume("t", Command(answers={paused.interrupts[0].id: "approve"}))
    assert drive_run(time.store, paused.run_id).status is RunStatus.COMPLETED
    assert graph.get_state("t").values.log == ["ask=reject"]
