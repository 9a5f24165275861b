"""Graphs called from inside a handler: recognised, remembered, gone on with."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from stateknot import START, Command, Interrupt, NodeContext, RunStatus, Timer
from stateknot.errors import NodeFailedError, RevisionMismatchError, RunError
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import Asker, Counted, Flaky, Tally, new_builder, note


def squared(counter: list[int] | None = None) -> Any:
    """A child that gives ten times what it is given, and counts."""

    def start(state: Tally) -> dict[str, Any]:
        if counter is not None:
            counter.append(state.total)
        return {"log": [str(state.total * 10)]}

    return line("tests.tenfold", {"start": start})


def hosting(handler: Any, checkpointer: Any) -> Any:
    """A graph of one node."""
    builder = new_builder("tests.host").add_node("host", handler)
    return builder.add_edge(START, "host").compile().with_checkpointer(checkpointer)


def test_calls_of_one_handler_have_places_of_their_own(checkpointer: Any) -> None:
    """SG-05: 10 and 20, in namespaces apart, and the root is left alone."""
    child = squared()

    def host(_state: Tally) -> dict[str, Any]:
        one, two = child.run({"total": 1}), child.run({"total": 2})
        return {"log": [*one.state.log, *two.state.log]}

    graph = hosting(host, checkpointer)
    done = graph.run_with_thread("t", {})
    assert done.state.log == ["10", "20"]
    spaces = [run.namespace for run in done.child_runs]
    assert spaces == [("1:0:host#1",), ("1:0:host#2",)]
    assert len(graph.get_state_history("t")) == 2


def test_pause_of_the_second_call_remembers_the_first(checkpointer: Any) -> None:
    """SG-05, decision 10: a finished call is remembered, the paused one goes on."""
    seen: list[int] = []
    first, second = squared(seen), line("tests.asking", {"start": Asker()})
    calls = []

    def host(_state: Tally) -> dict[str, Any]:
        calls.append(1)
        one = first.run({"total": 1})
        two = second.run({"total": 2})
        return {"log": [*one.state.log, *two.state.log]}

    graph = hosting(host, checkpointer)
    paused = graph.run_with_thread("t", {})
    assert paused.status is RunStatus.INTERRUPTED
    done = graph.resume("t", Command(resume=5))
    assert done.state.log == ["10", "start=5"]
    assert (seen, len(calls)) == ([1], 2)
    assert [run.graph_id for run in done.child_runs] == [
        "tests.tenfold",
        "tests.asking",
    ]


def test_pause_is_not_swallowed_by_a_broad_except(checkpointer: Any) -> None:
    """See Note [How a child stops its parent]."""
    child = line("tests.asking", {"start": Asker()})

    def host(_state: Tally) -> dict[str, Any]:
        try:
            return {"log": child.run({}).state.log}
        except Exception:  # noqa: BLE001 - what authors write
            return {"log": ["swallowed"]}

    graph = hosting(host, checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert graph.resume("t", Command(resume=1)).state.log == ["start=1"]


def test_handler_may_catch_the_failure_of_its_call(checkpointer: Any) -> None:
    child = line("tests.failing", {"start": Flaky("start", failures=9)})

    def host(_state: Tally) -> dict[str, Any]:
        try:
            child.run({})
        except NodeFailedError as error:
            return {"log": [f"caught {error.node_id}"]}
        return {}

    assert hosting(host, checkpointer).run_with_thread("t", {}).state.log == [
        "caught start"
    ]


def test_finished_call_is_remembered_after_the_handler_failed(
    checkpointer: Any,
) -> None:
    """Decision 10: what follows the call failed, so only that runs again."""
    seen: list[int] = []
    child, after = squared(seen), Flaky("after")

    def host(state: Tally) -> dict[str, Any]:
        log = child.run({"total": 3}).state.log
        return {"log": [*log, *after(state)["log"]]}

    graph = hosting(host, checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["30", "after"]
    assert (seen, after.calls) == ([3], 2)


def test_async_handler_calls_through_to_thread(checkpointer: Any) -> None:
    """The call is recognised in the thread that `asyncio.to_thread` takes."""
    seen: list[int] = []
    child = squared(seen)

    async def host(_state: Tally) -> dict[str, Any]:
        one = await asyncio.to_thread(child.run, {"total": 1})
        two = await asyncio.to_thread(child.run, {"total": 2})
        return {"log": [*one.state.log, *two.state.log]}

    done = hosting(host, checkpointer).run_with_thread("t", {})
    assert (done.state.log, seen) == (["10", "20"], [1, 2])
    assert [run.namespace for run in done.child_runs] == [
        ("1:0:host#1",),
        ("1:0:host#2",),
    ]


def test_pause_in_an_async_handler_pauses_the_parent(checkpointer: Any) -> None:
    child = line("tests.asking", {"start": Asker()})

    async def host(_state: Tally) -> dict[str, Any]:
        done = await asyncio.to_thread(child.run, {})
        return {"log": done.state.log}

    graph = hosting(host, checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert graph.resume("t", Command(resume=4)).state.log == ["start=4"]


def test_pause_in_a_task_group_pauses_the_parent(checkpointer: Any) -> None:
    """A group wraps what ends its tasks; it is looked through."""
    child = line("tests.asking", {"start": Asker()})

    async def host(_state: Tally) -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.to_thread(child.run, {}))
        return {"log": task.result().state.log}

    graph = hosting(host, checkpointer)
    assert graph.run_with_thread("t", {}).is_interrupted
    assert graph.resume("t", Command(resume=4)).state.log == ["start=4"]


def test_failure_beside_a_pause_in_a_task_group_is_a_failure(
    checkpointer: Any,
) -> None:
    child = line("tests.asking", {"start": Asker()})

    async def fail_late(started: asyncio.Event) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("beside")

    async def host(_state: Tally) -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_late(asyncio.Event()))
            group.create_task(asyncio.to_thread(child.run, {}))
        return {}

    with pytest.raises(NodeFailedError, match="ExceptionGroup") as failed:
        hosting(host, checkpointer).run_with_thread("t", {})
    assert "beside" in str(failed.value.__cause__.exceptions)


def test_run_on_the_loop_is_refused_with_the_way_out(checkpointer: Any) -> None:
    """Section 3: it would block the loop."""
    child = squared()

    async def host(_state: Tally) -> dict[str, Any]:
        return {"log": child.run({}).state.log}

    with pytest.raises(NodeFailedError, match="to_thread"):
        hosting(host, checkpointer).run_with_thread("t", {})


def test_call_on_a_thread_of_its_own_is_a_run_of_its_own(checkpointer: Any) -> None:
    """Whoever names a thread wants a run that stands alone."""
    child = squared().with_checkpointer(checkpointer)

    def host(_state: Tally) -> dict[str, Any]:
        return {"log": child.run_with_thread("other", {"total": 7}).state.log}

    done = hosting(host, checkpointer).run_with_thread("t", {})
    assert (done.state.log, done.child_runs) == (["70"], [])
    assert checkpointer.find_thread_run("other").parent_run_id is None


def test_another_graph_at_the_same_call_is_refused(checkpointer: Any) -> None:
    """The n-th call must call the same graph when the handler runs again."""
    asking = line("tests.asking", {"start": Asker()})
    graphs = [asking, squared()]

    def host(_state: Tally) -> dict[str, Any]:
        return {"log": graphs.pop(0).run({}).state.log}

    graph = hosting(host, checkpointer)
    graph.run_with_thread("t", {})
    with pytest.raises(NodeFailedError, match="one order"):
        graph.resume("t", Command(resume=1))


def test_child_of_another_revision_is_not_gone_on_with(checkpointer: Any) -> None:
    """Section 4: what waits is not driven by other code; the old code goes on."""
    napping = {"a": lambda _: Timer(timedelta(hours=1)), "b": note("b")}
    old = line("tests.child", napping)
    new = line("tests.child", {**napping, "c": note("c")})
    graphs = [old, new, old]

    def host(_state: Tally) -> dict[str, Any]:
        return {"log": graphs.pop(0).run({}).state.log}

    graph = hosting(host, checkpointer)
    assert graph.run_with_thread("t", {}).status is RunStatus.WAITING
    with pytest.raises(RevisionMismatchError):
        graph.retry("t")
    assert graph.retry("t").state.log == ["b"]


def test_sync_handler_with_a_timeout_calls_as_well(checkpointer: Any) -> None:
    """A timeout moves the handler to a thread of its own."""
    graph = parent_of(line("tests.c", {"c": note("c", 1)}), checkpointer, timeout=20)
    assert graph.run_with_thread("t", {}).state.log == ["before", "c", "after"]


def test_calls_in_a_loop_of_the_parent_do_not_meet(checkpointer: Any) -> None:
    """Each pass is an activation, so it has calls of its own."""
    child = squared()
    host = Counted(
        lambda s: {"log": child.run({"total": s.total}).state.log, "total": 1}
    )
    builder = new_builder("tests.host").add_node("host", host)
    builder.add_edge(START, "host").add_conditional_edges(
        "host",
        lambda s: "again" if s.total < 3 else "end",
        {"again": "host", "end": "__end__"},
    )
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["0", "10", "20"]


def test_called_graph_outside_a_run_is_a_run(checkpointer: Any) -> None:
    child = squared().with_checkpointer(checkpointer)
    done = child.run({"total": 4})
    assert (done.state.log, done.parent_run_id) == (["40"], None)


def test_namespace_that_no_column_holds_is_refused(checkpointer: Any) -> None:
    """A clear error on every database alike."""
    child = line("tests.c", {"c": note("c")}).with_namespace(["x" * 520])
    with pytest.raises(NodeFailedError, match="512 is the most") as failed:
        parent_of(child, checkpointer).run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, RunError)


def test_pause_in_the_second_call_of_one_child_leaves_the_first_alone(
    checkpointer: Any,
) -> None:
    """SG-05: S with 1, then with 2, which pauses: 10 and 20, and no root checkpoint."""

    def start(state: Tally, ctx: NodeContext) -> Any:
        if state.total == 2 and not ctx.has_resume:
            return Interrupt("go on?")
        return {"log": [str(state.total * 10)]}

    child = line("tests.child", {"start": start})

    def begin(_state: Tally) -> dict[str, Any]:
        one, two = child.run({"total": 1}), child.run({"total": 2})
        return {"log": [*one.state.log, *two.state.log]}

    graph = hosting(begin, checkpointer)
    paused = graph.run_with_thread("t", {})
    assert paused.status is RunStatus.INTERRUPTED
    one, two = checkpointer.list_children(paused.run_id)
    stood = checkpointer.list_checkpoints("t", namespace=one.namespace)
    assert one.namespace != two.namespace
    assert [s.metadata["source"] for s in graph.get_state_history("t")] == [
        "interrupt",
        "input",
    ]
    assert graph.get_state("t").values == Tally()
    assert graph.resume("t", Command(resume=True)).state.log == ["10", "20"]
    assert checkpointer.list_checkpoints("t", namespace=one.namespace) == stood
