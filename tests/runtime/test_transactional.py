"""Transactional nodes: what a handler writes and its result are one (decision 15).

The database is at hand for both stores: in memory the handler's rows stand in a
transaction of the project's all the same.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot import (
    START,
    Command,
    Interrupt,
    NodeContext,
    ResumeTarget,
    RetryableError,
    RetryPolicy,
    Timer,
    shared_subgraph,
)
from stateknot.errors import (
    LeaseError,
    NodeFailedError,
    ReducerError,
    StoreLostError,
)
from stateknot.models import Run
from stateknot.registry import register
from stateknot.services import start_run
from stateknot.storage import DjangoCheckpointer
from tests.runtime.drives import tried
from tests.runtime.graphs import (
    Flaky,
    Tally,
    add_fan,
    add_line,
    new_builder,
    note,
    sources,
)
from tests.runtime.points import Crash, pointed, raising
from tests.runtime.test_parallel_results import Desk
from tests.runtime.writers import Writer, fail, paying, rows

if TYPE_CHECKING:
    from stateknot import CompiledGraph
    from tests.runtime.clock import FakeClock

pytestmark = pytest.mark.django_db(transaction=True)
MODES = pytest.mark.parametrize("mode", ["sync", "async", "exit"])


def side_by_side(checkpointer: Any, **nodes: Any) -> CompiledGraph:
    """`nodes` at once; those that write rows are transactional."""
    builder = new_builder()
    for name, handler in nodes.items():
        builder.add_node(name, handler, transactional=isinstance(handler, Writer))
    builder.add_edge(START, list(nodes))
    return builder.with_parallel().compile().with_checkpointer(checkpointer)


@MODES
def test_rows_and_result_are_stored_once(checkpointer: Any, mode: str) -> None:
    graph = paying(Writer(), checkpointer).with_durability(mode)
    assert graph.run_with_thread("t", {}).state.log == ["a", "pay", "z"]
    assert rows() == ["row 1"]
    assert tried(checkpointer) == [
        ("a", 1, "succeeded"),
        ("pay", 1, "succeeded"),
        ("z", 1, "succeeded"),
    ]
    assert checkpointer.list_results(checkpointer.find_thread_run("t")) == []


def test_exit_mode_writes_a_boundary_in_front_of_the_node(checkpointer: Any) -> None:
    """Its result must not stand behind work that is not stored."""
    graph = paying(Writer(), checkpointer).with_durability("exit")
    graph.run_with_thread("t", {})
    assert sources(graph, "t") == ["input", "loop", "loop"]
    records = checkpointer.list_checkpoints("t")
    assert [record.sequence for record in records] == [2, 1, 0]
    assert [record.step for record in records] == [3, 1, 0]


def test_exit_mode_keeps_its_count_behind_an_early_boundary(checkpointer: Any) -> None:
    """See Note [One place for many]: several are swallowed before it, and behind."""
    builder = add_line(new_builder(), "a", "b", "c").add_node("z", Flaky("z"))
    builder.add_node("pay", Writer(), transactional=True).add_node("y", note("y"))
    builder.add_sequence("c", "pay", "y", "z")
    graph = builder.compile().with_checkpointer(checkpointer).with_durability("exit")
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert [r.sequence for r in checkpointer.list_checkpoints("t")] == [2, 1, 0]
    assert graph.retry("t").state.log == ["a", "b", "c", "pay", "y", "z"]
    assert [r.sequence for r in checkpointer.list_checkpoints("t")] == [3, 2, 1, 0]
    assert ("z", 2, "succeeded") not in tried(checkpointer)


def test_failed_attempt_leaves_its_row_out(checkpointer: Any, clock: FakeClock) -> None:
    """The attempt is recorded behind what was undone."""

    def fails_once(_state: Tally, ctx: NodeContext) -> Any:
        if ctx.attempt == 1:
            raise RetryableError("not now")
        return {"log": ["pay"]}

    graph = paying(Writer(fails_once), checkpointer, retry=RetryPolicy())
    graph._with(clock=clock).run_with_thread("t", {})
    assert rows() == ["row 2"]
    assert tried(checkpointer)[1:3] == [("pay", 1, "failed"), ("pay", 2, "succeeded")]


def test_failure_leaves_its_row_out(checkpointer: Any) -> None:
    flaky = Flaky("pay")
    graph = paying(Writer(lambda state, _ctx: flaky(state)), checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert rows() == []
    graph.retry("t")
    assert rows() == ["row 2"]


def test_error_handler_writes_in_a_transaction_of_its_own(checkpointer: Any) -> None:
    def rescue(_state: Tally, _ctx: NodeContext, _error: Exception) -> Any:
        Group.objects.create(name="rescued")
        return {"log": ["rescued"]}

    graph = paying(Writer(fail), checkpointer, on_error=rescue)
    assert graph.run_with_thread("t", {}).state.log == ["a", "rescued", "z"]
    assert rows() == ["rescued"]


@MODES
@pytest.mark.parametrize("point", ["before record", "after record"])
def test_crash_before_the_commit_undoes_both(
    checkpointer: Any, mode: str, point: str
) -> None:
    writer = Writer()
    store = pointed(checkpointer).at(point, raising(Crash()))
    graph = paying(writer, store).with_durability(mode)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    assert rows() == []
    assert graph.resume("t").state.log == ["a", "pay", "z"]
    assert (rows(), writer.calls) == (["row 2"], 2)


@MODES
def test_crash_behind_the_commit_runs_nothing_again(
    checkpointer: Any, mode: str
) -> None:
    """The result is there before its boundary; a retry without reuse keeps it too."""
    writer, store = Writer(), pointed(checkpointer)

    def crash(_times: int) -> None:
        if writer.calls:
            raise Crash

    graph = paying(writer, store.at("before commit", crash)).with_durability(mode)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    assert rows() == ["row 1"]
    store.clear()
    done = graph.retry("t", reuse_results=False)
    assert done.state.log == ["a", "pay", "z"]
    assert (rows(), writer.calls) == (["row 1"], 1)


def test_stale_holder_writes_neither(checkpointer: Any) -> None:
    """The fence is read behind the handler, in its transaction."""

    def lose(_state: Tally, ctx: NodeContext) -> Any:
        assert checkpointer.claim(ctx.run_id, "other", supersede=True)
        return {"log": ["pay"]}

    graph = paying(Writer(lose), checkpointer)
    with pytest.raises(LeaseError):
        graph.run_with_thread("t", {})
    assert rows() == []


def test_question_leaves_the_row_to_the_attempt_that_finishes(
    checkpointer: Any,
) -> None:
    """See Note [Who asks, asks again]."""

    def ask(_state: Tally, ctx: NodeContext) -> Any:
        return {"log": [ctx.resume]} if ctx.has_resume else Interrupt("sure?")

    graph = paying(Writer(ask), checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert rows() == []
    assert graph.resume("t", Command(resume="yes")).state.log == ["a", "yes", "z"]
    assert rows() == ["row 2"]


def test_question_that_completes_its_node_is_asked_after_a_crash(
    checkpointer: Any,
) -> None:
    """Decision 4: it is part of the stored result."""
    writer, store = Writer(lambda _s, _c: Interrupt("sure?")), pointed(checkpointer)
    builder = new_builder().add_edge(START, "pay")
    builder.add_node("pay", writer, transactional=True, wait_to=["z"])
    builder.add_node("z", lambda _s, ctx: {"log": [ctx.resume]})
    graph = builder.compile().with_checkpointer(store)
    store.at("before commit", raising(Crash()))
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    paused = graph.resume("t")
    assert [question.payload for question in paused.interrupts] == ["sure?"]
    assert graph.resume("t", Command(resume="yes")).state.log == ["yes"]
    assert rows() == ["row 1"]


def test_timer_is_set_by_the_stored_result(checkpointer: Any) -> None:
    graph = paying(Writer(lambda _s, _c: Timer(timedelta(days=1))), checkpointer)
    assert graph.run_with_thread("t", {}).status == "waiting"
    assert graph.retry("t").state.log == ["a", "z"]
    assert rows() == ["row 1"]


@pytest.mark.parametrize("update", [{"nothing": 1}, {"total": "many"}, 7])
def test_update_that_cannot_be_folded_leaves_the_row_out(
    checkpointer: Any, update: Any
) -> None:
    """Found at the barrier, the row would stand and the node run again."""
    graph = paying(Writer(lambda _s, _c: update), checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert rows() == []


def test_result_that_only_the_barrier_refuses_is_kept(checkpointer: Any) -> None:
    """Decision 2: a retry repeats the fold, not the node."""
    builder = new_builder(state=Desk)
    builder.add_node("z", lambda _s: {"x": 1})
    builder.add_node("pay", Writer(lambda _s, _c: {"x": 2}), transactional=True)
    builder.add_edge(START, ["pay", "z"])
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(ReducerError, match="node 'pay'"):
        graph.run_with_thread("t", {})
    assert rows() == ["row 1"]
    graph.update_state("t", {}, as_node="z")
    assert graph.retry("t", reuse_results=False).state.x == 2
    assert rows() == ["row 1"]


def test_results_side_by_side_are_each_a_commit(checkpointer: Any) -> None:
    """A sibling that fails takes none of them along."""
    one, two = Writer(), Writer(lambda _s, _c: {"log": ["two"]})
    one.calls = 10
    graph = side_by_side(checkpointer, a=Flaky("a"), b=one, c=two)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert sorted(rows()) == ["row 1", "row 11"]
    assert graph.retry("t", reuse_results=False).state.log == ["a", "pay", "two"]
    assert sorted(rows()) == ["row 1", "row 11"]


def test_transactional_node_of_a_child_is_one_with_its_result(
    checkpointer: Any,
) -> None:
    writer, store = Writer(), pointed(checkpointer)
    child = new_builder("tests.child").add_edge(START, "pay")
    child = child.add_node("pay", writer, transactional=True).compile()
    builder = add_fan(new_builder(), {"sub": shared_subgraph(child)})
    graph = builder.compile().with_checkpointer(store)
    store.at("before commit", raising(Crash()))
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    assert graph.resume("t").state.log == ["pay"]
    assert (rows(), writer.calls) == (["row 1"], 1)


def test_fork_and_branch_write_again(checkpointer: Any) -> None:
    """Both tell the story once more, from before the node."""
    graph = paying(Writer(), checkpointer)
    graph.run_with_thread("t", {})
    before = graph.get_state_history("t")[2].config["checkpoint_id"]
    graph.fork_state("t", "u", before)
    graph.resume("u")
    graph.resume_from("t", ResumeTarget.checkpoint(before))
    assert rows() == ["row 1", "row 2", "row 3"]


def test_fork_of_a_kept_result_writes_nothing(checkpointer: Any) -> None:
    graph = side_by_side(checkpointer, a=Flaky("a"), b=Writer())
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    graph.fork_state("t", "u")
    assert graph.resume("u").state.log == ["a", "pay"]
    assert rows() == ["row 1"]


@pytest.mark.usefixtures("empty_registry")
def test_run_that_the_handler_starts_is_one_with_its_result(
    checkpointer: Any,
) -> None:
    """`start_run` takes part in the handler's transaction."""
    register(add_line(new_builder("tests.other"), "x").compile())

    def begin(_state: Tally, _ctx: NodeContext) -> Any:
        start_run("tests.other", {})
        if writer.calls == 1:
            raise ValueError("the first try fails")

    writer = Writer(begin)
    graph = paying(writer, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    others = Run.objects.filter(graph_id="tests.other")
    assert (others.count(), OrmQ.objects.count()) == (0, 0)
    graph.retry("t")
    assert (others.count(), OrmQ.objects.count()) == (1, 1)


def test_transactional_node_of_a_composed_body_stays_so(checkpointer: Any) -> None:
    """What a template says of a node holds for each that is made of it."""
    body = new_builder("tests.body").add_edge(START, "pay").add_port("done")
    body.add_node("pay", Writer(fail), transactional=True).add_edge("pay", "done")
    builder = new_builder().add_edge(START, "call").add_node("z", note("z"))
    builder.add_subgraph_call("call", body, returns={"done": "z"})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert rows() == []


@pytest.mark.only_on("postgres")
def test_commit_that_is_lost_is_no_failure_of_the_node() -> None:
    """The connection ends behind the handler; the next drive runs it again."""
    store, calls = DjangoCheckpointer(), []

    def cut_once(_state: Tally, _ctx: NodeContext) -> Any:
        calls.append(1)
        if len(calls) == 1:
            with socket.socket(fileno=os.dup(connection.connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        return {"log": ["pay"]}

    graph = paying(Writer(cut_once), store)
    with pytest.raises(StoreLostError, match="goes on from what was stored"):
        graph.run_with_thread("t", {})
    connection.close()
    run = store.find_thread_run("t")
    assert run is not None
    assert not run.status.is_terminal
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    assert graph.retry("t").state.log == ["a", "pay", "z"]
    assert rows() == ["row 2"]
