"""Children that wait for a time: parents wait with them, and no process sleeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import (
    Interrupt,
    MemoryCheckpointer,
    NodeContext,
    RetryPolicy,
    RunStatus,
    Timer,
    shared_subgraph,
)
from stateknot.registry import register
from stateknot.runtime.admission import answer_due
from stateknot.runtime.worker import drive_run
from tests.runtime.drives import admit, drive, make_due
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    Tally,
    add_fan,
    new_builder,
    note,
)

HOUR = timedelta(hours=1)


def napping() -> tuple[Counted, Any]:
    """A child that sets a timer of an hour between its nodes."""
    first = Counted(note("c1", 1))
    nodes = {"c1": first, "nap": lambda _: Timer(HOUR), "c3": note("c3", 1)}
    return first, line("tests.child", nodes)


def test_timer_of_a_child_makes_the_parent_wait(time: Any) -> None:
    """Decision 10: the parent is due when its child is."""
    first, child = napping()
    graph = parent_of(child, time.store)
    waiting = graph.run_with_thread("t", {})
    assert waiting.status is RunStatus.WAITING
    run = time.store.find_run(waiting.run_id)
    left = (run.wake_at - time.store.now()).total_seconds()
    assert 3_500 < left <= 3_600
    time.pass_by(HOUR)
    done = graph.resume("t")
    assert done.state.log == ["before", "c1", "c3", "after"]
    assert first.calls == 1


def test_retry_runs_a_waiting_child_now(time: Any) -> None:
    """`retry` fires the timers of children as well."""
    first, child = napping()
    graph = parent_of(child, time.store)
    graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["before", "c1", "c3", "after"]
    assert first.calls == 1


def test_timer_two_levels_down_makes_both_wait(time: Any) -> None:
    _, child = napping()
    middle = line("tests.middle", {"in": shared_subgraph(child)})
    graph = parent_of(middle, time.store)
    waiting = graph.run_with_thread("t", {})
    (below,) = time.store.list_children(waiting.run_id)
    assert (waiting.status, below.status) == (RunStatus.WAITING, RunStatus.WAITING)
    assert graph.retry("t").state.log == ["before", "c1", "c3", "after"]


def test_kept_sibling_of_a_waiting_child_is_told(time: Any) -> None:
    """Decision 2: what finished beside it is kept, and its child run told with it."""
    _, child = napping()
    ten = line("tests.ten", {"c": Counted(note("c", 10))})
    builder = add_fan(
        new_builder(), {"a": shared_subgraph(ten), "b": shared_subgraph(child)}
    )
    graph = builder.compile().with_checkpointer(time.store)
    graph.run_with_thread("t", {})
    done = graph.retry("t")
    assert done.state == Tally(total=12, log=["c", "c1", "c3"])
    told = graph.get_state("t").metadata["child_runs"]
    assert sorted(run["node"] for run in told) == ["a", "b"]


@pytest.mark.usefixtures("empty_registry")
def test_long_retry_of_a_child_is_stored(checkpointer: Any) -> None:
    """Decision 9: on a worker neither the child nor its parent sleeps."""
    second = Flaky("c2", error=ConnectionError)
    first = Counted(note("c1"))
    policy = RetryPolicy(initial_interval=3600, maximum_interval=3600)
    child = line("tests.child", {"c1": first, "c2": second}).with_node_retry(policy)
    graph = parent_of(child, checkpointer)
    admit(graph)
    assert drive(checkpointer).status is RunStatus.WAITING
    make_due(checkpointer)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert (first.calls, second.calls) == (1, 2)


@pytest.mark.usefixtures("empty_registry")
def test_worker_drives_a_parent_with_its_child(checkpointer: Any) -> None:
    """One pass drives both; an answer is enough to go on on another."""
    child = line("tests.child", {"c1": note("c1"), "ask": Asker()})
    graph = parent_of(child, checkpointer)
    run = admit(graph)
    assert drive(checkpointer).status is RunStatus.INTERRUPTED
    (wait,) = checkpointer.list_waits("t")
    with checkpointer.atomic():
        checkpointer.answer(wait.id, 4)
    from stateknot.runtime.worker import take_up_answers

    assert take_up_answers(checkpointer, run.id)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert graph.get_state("t").values.log == ["before", "c1", "ask=4", "after"]


@pytest.mark.usefixtures("empty_registry")
def test_child_run_is_not_driven_by_itself(checkpointer: Any) -> None:
    """Only its parent drives it, whoever asks, and whether it is registered or not."""
    first, child = napping()
    graph = parent_of(child, checkpointer)
    register(child)
    run = admit(graph)
    drive(checkpointer)
    (below,) = checkpointer.list_children(run.id)
    make_due(checkpointer)
    passed = drive_run(checkpointer, below.id)
    assert (passed.status, passed.wants_more) == (None, False)
    assert checkpointer.find_run(below.id).status is RunStatus.WAITING
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert first.calls == 1


@pytest.mark.usefixtures("empty_registry")
def test_lost_parent_is_taken_up_with_its_running_child(checkpointer: Any) -> None:
    """A lease that ran out: the child goes on from its own records."""
    from tests.runtime.points import Crash

    first = Counted(note("c1"))

    class Dying:
        calls = 0

        def __call__(self, _state: Tally) -> dict[str, Any]:
            self.calls += 1
            if self.calls == 1:
                raise Crash
            return {"log": ["c2"]}

    dying = Dying()
    child = line("tests.child", {"c1": first, "c2": dying})
    graph = parent_of(child, checkpointer)
    run = admit(graph)
    _leave_leases_behind(checkpointer)
    with pytest.raises(Crash):
        drive(checkpointer)
    (below,) = checkpointer.list_children(run.id)
    assert (below.status, below.epoch) == (RunStatus.RUNNING, 1)
    _expire(checkpointer, run.id)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert (first.calls, dying.calls) == (1, 2)
    assert checkpointer.find_run(below.id).epoch == 2
    assert graph.get_state("t").values.log == ["before", "c1", "c2", "after"]


def _leave_leases_behind(store: Any) -> None:
    """Let nothing be given back, as when a process is killed."""
    store.release = lambda _fence: False


def _expire(store: Any, run_id: str) -> None:
    """Let the lease of the parent have run out, and that of nothing else."""
    if isinstance(store, MemoryCheckpointer):
        store._runs[run_id].hold(None)
        return
    from django.db.models import F

    from stateknot.models import Run

    Run.objects.filter(id=run_id).update(
        lease_expires_at=F("lease_expires_at") - timedelta(days=1)
    )


@pytest.mark.usefixtures("empty_registry")
def test_stale_parent_can_neither_make_nor_take_a_child(checkpointer: Any) -> None:
    """Its lease was lost while its handler ran: a new holder has the children."""
    child = line("tests.child", {"c1": note("c1")})

    def host(_state: Tally) -> dict[str, Any]:
        run = checkpointer.find_thread_run("t")
        with checkpointer.atomic():
            checkpointer.claim(run.id, "another", supersede=True)
        return {"log": child.run({}).state.log}

    graph = parent_of(host, checkpointer)
    run = admit(graph)
    assert drive(checkpointer).status is None
    assert checkpointer.list_children(run.id) == []


def expiring(_state: Tally, ctx: NodeContext) -> Any:
    if ctx.has_resume:
        return {"log": [f"answer {ctx.resume}"]}
    return Interrupt("?", expires_in=HOUR, default="late")


def test_deadline_of_a_child_is_that_of_the_parents_question(time: Any) -> None:
    """IH-15, one level down: 59 minutes are not an hour, and one answer counts."""
    graph = parent_of(line("tests.child", {"ask": expiring}), time.store)
    graph.run_with_thread("t", {})
    (wait,) = time.store.list_waits("t")
    assert 3_590 < (wait.due_at - time.store.now()).total_seconds() <= 3_600
    time.pass_by(HOUR)
    with time.store.atomic():
        assert answer_due(time.store, "t") == 1
    assert graph.resume("t").state.log == ["before", "answer late", "after"]


def test_sweep_answers_the_parents_question_not_the_childs(
    transactional_db: None, empty_registry: None
) -> None:
    """A child that was reopened by itself would run beside its parent."""
    from stateknot.models import Wait
    from stateknot.runtime.recovery import sweep
    from stateknot.storage import DjangoCheckpointer
    from tests.runtime.moving_time import DatabaseTime

    store, time = DjangoCheckpointer(), DatabaseTime()
    child = line("tests.child", {"ask": expiring})
    graph = parent_of(child, store)
    register(child)
    run = admit(graph)
    drive(store)
    time.pass_by(HOUR)
    assert sweep().run_ids == (run.id,)
    statuses = {w.namespace: w.status for w in Wait.objects.order_by("asked_at")}
    assert statuses == {"": "answered", "2:0:child": "open"}
    assert drive(store).status is RunStatus.COMPLETED
    assert graph.get_state("t").values.log == ["before", "answer late", "after"]
