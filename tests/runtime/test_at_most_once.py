"""At-most-once nodes: begun in a commit of their own, never run again by themselves."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import (
    START,
    Command,
    Interrupt,
    NodeContext,
    ResumeTarget,
    RetryableError,
    RetryPolicy,
    shared_subgraph,
)
from stateknot.errors import NodeFailedError, OutcomeUnknownError, StoreLostError
from tests.runtime.drives import admit, attempts_of, drive, tried
from tests.runtime.graphs import (
    PATIENCE,
    Asker,
    Flaky,
    Tally,
    add_fan,
    add_line,
    compiled,
    new_builder,
    note,
)
from tests.runtime.points import Crash, pointed, raising

if TYPE_CHECKING:
    from stateknot import CompiledGraph
    from tests.runtime.clock import FakeClock

MODES = pytest.mark.parametrize("mode", ["sync", "async", "exit"])
UNKNOWN = OutcomeUnknownError.code


class Payment:
    """A handler that acts at each call, then does what `then` says, once."""

    def __init__(self, then: Any = None) -> None:
        self.then = then
        self.calls = 0

    def __call__(self, _state: Tally, _ctx: NodeContext) -> Any:
        self.calls += 1
        then, self.then = self.then, None
        if isinstance(then, BaseException):
            raise then
        return {"log": ["pay"]} if then is None else then()


def paying(handler: Any, checkpointer: Any, **options: Any) -> CompiledGraph:
    """Node a, then `pay` at most once, then z."""
    builder = add_line(new_builder(), "a").add_node("z", note("z"))
    builder.add_node("pay", handler, at_most_once=True, **options)
    builder.add_edge("a", "pay").add_edge("pay", "z")
    return compiled(builder, checkpointer)


def crash_at(graph: CompiledGraph) -> None:
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})


def code_of(call: Any) -> str:
    """The code of the failure that `call` ends in."""
    with pytest.raises(NodeFailedError) as failed:
        call()
    assert failed.value.node_id == "pay"
    return failed.value.code


@MODES
def test_start_is_stored_before_the_handler(checkpointer: Any, mode: str) -> None:
    """Behind what was written earlier, in every mode."""
    seen: list[Any] = []

    def pay(_state: Tally) -> Any:
        head = checkpointer.find_thread_run("t")
        seen.append((tried(checkpointer), head.sequence))
        return {"log": ["pay"]}

    graph = paying(pay, checkpointer).with_durability(mode)
    assert graph.run_with_thread("t", {}).state.log == ["a", "pay", "z"]
    assert seen == [([("a", 1, "succeeded"), ("pay", 1, "running")], 1)]
    assert tried(checkpointer)[1] == ("pay", 1, "succeeded")
    assert checkpointer.list_results(checkpointer.find_thread_run("t")) == []


@MODES
def test_node_that_was_lost_is_not_run_again(checkpointer: Any, mode: str) -> None:
    """Neither by a resume nor by a retry; its attempt says how it ended."""
    payment = Payment(Crash())
    graph = paying(payment, checkpointer).with_durability(mode)
    crash_at(graph)
    assert code_of(lambda: graph.resume("t")) == UNKNOWN
    assert code_of(lambda: graph.retry("t")) == UNKNOWN
    assert code_of(lambda: graph.retry("t", reuse_results=False)) == UNKNOWN
    assert payment.calls == 1
    assert [t for t in tried(checkpointer) if t[0] == "pay"] == [("pay", 1, "lost")]


def test_lost_node_runs_again_on_purpose(checkpointer: Any) -> None:
    payment = Payment(Crash())
    graph = paying(payment, checkpointer)
    crash_at(graph)
    assert code_of(lambda: graph.resume("t")) == UNKNOWN
    done = graph.retry("t", rerun_unknown=True)
    assert (done.state.log, payment.calls) == (["a", "pay", "z"], 2)


@pytest.mark.parametrize("is_told", [False, True])
def test_lost_node_is_marked_as_done(checkpointer: Any, is_told: bool) -> None:
    """Before or after a drive has told of it; nothing is left running."""
    payment = Payment(Crash())
    graph = paying(payment, checkpointer)
    crash_at(graph)
    if is_told:
        assert code_of(lambda: graph.resume("t")) == UNKNOWN
    graph.update_state("t", {"log": ["by hand"]}, as_node="pay")
    assert graph.resume("t").state.log == ["a", "by hand", "z"]
    assert payment.calls == 1
    assert "running" not in {status for _, _, status in tried(checkpointer)}


@MODES
@pytest.mark.parametrize("point", ["before commit", "after commit"])
def test_crash_behind_the_handler_folds_what_it_gave(
    checkpointer: Any, mode: str, point: str
) -> None:
    payment, store = Payment(), pointed(checkpointer)

    def crash(_times: int) -> None:
        if payment.calls:
            raise Crash

    graph = paying(payment, store.at(point, crash)).with_durability(mode)
    crash_at(graph)
    store.clear()
    assert graph.retry("t", reuse_results=False).state.log == ["a", "pay", "z"]
    assert payment.calls == 1


@pytest.mark.parametrize("point", ["before record", "after record"])
def test_crash_before_the_start_is_stored_runs_it(
    checkpointer: Any, point: str
) -> None:
    payment, store = Payment(), pointed(checkpointer)
    graph = paying(payment, store.at(point, raising(Crash())))
    crash_at(graph)
    assert payment.calls == 0
    store.clear()
    assert graph.resume("t").state.log == ["a", "pay", "z"]


def test_crash_before_the_end_is_stored_leaves_it_unknown(checkpointer: Any) -> None:
    payment, store = Payment(), pointed(checkpointer)
    graph = paying(payment, store.at("before record", raising(Crash(), on=2)))
    crash_at(graph)
    store.clear()
    assert code_of(lambda: graph.resume("t")) == UNKNOWN
    assert payment.calls == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_node_that_timed_out_is_unknown(checkpointer: Any, is_async: bool) -> None:
    """Its thread may still act."""
    calls: list[str] = []
    let_go = threading.Event()

    def pay(_state: Tally) -> None:
        calls.append("pay")
        let_go.wait(PATIENCE)

    async def pay_async(_state: Tally) -> None:
        calls.append("pay")
        await asyncio.sleep(PATIENCE)

    graph = paying(pay_async if is_async else pay, checkpointer, timeout=0.05)
    assert code_of(lambda: graph.run_with_thread("t", {})) == UNKNOWN
    let_go.set()
    assert code_of(lambda: graph.retry("t")) == UNKNOWN
    assert len(calls) == 1


def test_node_that_raised_runs_again_by_a_retry_alone(
    checkpointer: Any, clock: FakeClock
) -> None:
    """Whoever raises says that it did not act; no policy of the graph's runs it."""
    payment = Payment(RetryableError("the bank is away"))
    graph = paying(payment, checkpointer)._with(clock=clock)
    graph = graph.with_node_retry(RetryPolicy())
    assert code_of(lambda: graph.run_with_thread("t", {})) == "node.retryable"
    assert code_of(lambda: graph.resume("t")) == "node.retryable"
    assert payment.calls == 1
    assert graph.retry("t").state.log == ["a", "pay", "z"]


def test_crash_behind_a_failure_does_not_run_it_again(checkpointer: Any) -> None:
    """What it raised is stored before the boundary that tells of it."""
    payment = Payment(ValueError("no card"))
    store = pointed(checkpointer).at("before commit", raising(Crash(), on=2))
    graph = paying(payment, store)
    crash_at(graph)
    with pytest.raises(NodeFailedError, match="no card"):
        graph.resume("t")
    assert payment.calls == 1


@pytest.mark.parametrize("given", [7, {"nothing": 1}, {"mark": object()}])
def test_result_that_cannot_be_stored_is_not_asked_for_again(
    checkpointer: Any, given: Any
) -> None:
    """It has acted, whatever it gave."""
    payment = Payment(lambda: given)
    graph = paying(payment, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert code_of(lambda: graph.retry("t")) == UNKNOWN
    assert payment.calls == 1


def test_update_that_the_state_refuses_is_kept(checkpointer: Any) -> None:
    """Decision 2: it has acted; marking it as done goes on without it."""
    payment = Payment(lambda: {"total": "many"})
    graph = paying(payment, checkpointer)
    for act in (lambda: graph.run_with_thread("t", {}), lambda: graph.retry("t")):
        with pytest.raises(NodeFailedError):
            act()
    graph.update_state("t", {"total": 5}, as_node="pay")
    assert graph.resume("t").state.total == 6
    assert payment.calls == 1


def test_answer_begins_another_attempt(checkpointer: Any) -> None:
    """A question ends the attempt; the answer is what runs it again."""
    asker = Asker()
    graph = paying(asker, checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert graph.resume("t", Command(resume=3)).state.log == ["a", "pay=3", "z"]
    assert [t for t in tried(checkpointer) if t[0] == "pay"] == [
        ("pay", 1, "interrupted"),
        ("pay", 1, "succeeded"),
    ]


def test_answer_of_a_sibling_does_not_run_a_lost_node(checkpointer: Any) -> None:
    asked, payment = threading.Event(), Payment(Crash())

    def ask(_state: Tally, ctx: NodeContext) -> Any:
        asked.set()
        return {"log": [ctx.resume]} if ctx.has_resume else Interrupt("sure?")

    builder = new_builder().add_edge(START, ["ask", "pay"]).add_node("ask", ask)
    graph = compiled(
        builder.add_node("pay", payment, at_most_once=True).with_parallel(),
        checkpointer,
    )
    crash_at(graph)
    assert graph.resume("t").is_interrupted
    assert code_of(lambda: graph.resume("t", Command(resume="yes"))) == UNKNOWN
    assert payment.calls == 1
    graph.update_state("t", {"log": ["paid"]}, as_node="pay")
    assert graph.resume("t").state.log == ["yes", "paid"]


def test_finished_node_is_kept_beside_a_failed_sibling(checkpointer: Any) -> None:
    payment = Payment()
    builder = add_fan(new_builder(), {"a": Flaky("a")}).add_edge(START, "pay")
    builder.add_node("pay", payment, at_most_once=True).with_parallel()
    graph = compiled(builder, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t", reuse_results=False).state.log == ["a", "pay"]
    assert payment.calls == 1


def test_fork_takes_what_is_unknown_along(checkpointer: Any) -> None:
    """A fork of the failure does not run it by itself; one from before it does."""
    payment = Payment(Crash())
    graph = paying(payment, checkpointer)
    crash_at(graph)
    assert code_of(lambda: graph.resume("t")) == UNKNOWN
    graph.fork_state("t", "u")
    assert code_of(lambda: graph.resume("u")) == UNKNOWN
    assert graph.retry("u", rerun_unknown=True).state.log == ["a", "pay", "z"]
    before = graph.get_state_history("t")[1].config["checkpoint_id"]
    graph.resume_from("t", ResumeTarget.checkpoint(before))
    assert payment.calls == 3


def test_lost_node_of_a_child_is_retried_through_its_parent(checkpointer: Any) -> None:
    payment = Payment(Crash())
    child = new_builder("tests.child").add_edge(START, "pay")
    child = child.add_node("pay", payment, at_most_once=True).compile()
    builder = add_fan(new_builder(), {"sub": shared_subgraph(child)})
    graph = compiled(builder, checkpointer)
    crash_at(graph)
    for act in (graph.resume, graph.retry):
        with pytest.raises(NodeFailedError, match="nobody can tell"):
            act("t")
    assert payment.calls == 1
    assert graph.retry("t", rerun_unknown=True).state.log == ["pay"]
    assert payment.calls == 2


def test_graph_inside_an_at_most_once_node_is_refused(checkpointer: Any) -> None:
    """A child that waits would run its node again."""
    child = add_line(new_builder("tests.child"), "x").compile()
    graph = paying(lambda state: child.run(state), checkpointer)
    with pytest.raises(NodeFailedError, match="ordinary node"):
        graph.run_with_thread("t", {})


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("empty_registry")
def test_claim_over_a_lost_lease_ends_the_attempt() -> None:
    """Decision 18: it is the lost attempt of the head, and there is no second."""
    from django.db.models.functions import Now

    from stateknot.models import Run
    from stateknot.storage import DjangoCheckpointer

    store = type("Deaf", (DjangoCheckpointer,), {"release": lambda *_: False})()
    payment = Payment(Crash())
    admit(paying(payment, store))
    with pytest.raises(Crash):
        drive(store)
    assert [a.status for a in attempts_of(store)][1] == "running"
    Run.objects.update(lease_expires_at=Now())
    drive(store)
    assert Run.objects.get().error_code == UNKNOWN
    assert tried(store)[1:] == [("pay", 1, "lost")]
    assert payment.calls == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("empty_registry")
def test_late_end_behind_another_claim_is_refused() -> None:
    """It was slow, not dead: what it gives is refused, and nobody runs it again."""
    from django.db.models.functions import Now

    from stateknot.models import Run
    from stateknot.storage import DjangoCheckpointer

    def overtaken(_state: Tally) -> Any:
        calls.append("pay")
        Run.objects.update(lease_expires_at=Now())
        statuses.append(drive(DjangoCheckpointer()).status)
        return {"log": ["pay"]}

    calls: list[str] = []
    statuses: list[Any] = []
    store = DjangoCheckpointer()
    admit(paying(overtaken, store))
    assert drive(store).status is None
    assert (statuses, calls) == (["failed"], ["pay"])
    assert Run.objects.get().error_code == UNKNOWN
    assert tried(store)[1:] == [("pay", 1, "lost")]


@pytest.mark.parametrize(("write", "code"), [(1, ""), (2, UNKNOWN)])
def test_store_that_is_lost_ends_the_drive(
    checkpointer: Any, write: int, code: str
) -> None:
    """In front of the handler nothing was begun; behind it nobody can tell."""
    payment, store = Payment(), pointed(checkpointer)
    fault = ConnectionError("the database is away")
    graph = paying(payment, store.at("before record", raising(fault, on=write)))
    with pytest.raises(StoreLostError):
        graph.run_with_thread("t", {})
    store.clear()
    if code:
        assert code_of(lambda: graph.resume("t")) == code
    else:
        assert graph.resume("t").state.log == ["a", "pay", "z"]
    assert payment.calls == 1
