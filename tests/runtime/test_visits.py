"""Total steps, visits of a node, depth: what bounds a run apart from its graph's limit.

`test_limits.py` has the superstep limit itself.
"""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import (
    START,
    Command,
    RecursionPolicy,
    RetryableError,
    RetryPolicy,
    RunStatus,
    Send,
)
from stateknot.errors import (
    NodeFailedError,
    NodeVisitLimitError,
    RecursionLimitError,
    SubAgentDepthError,
)
from stateknot.runtime.budget import Quantum
from tests.runtime.drives import admit, drive, make_due
from tests.runtime.graphs import (
    Asker,
    Counted,
    Flaky,
    add_fan,
    add_line,
    new_builder,
    note,
    sources,
)
from tests.runtime.points import Crash, pointed


def endless(node: Any = None) -> Any:
    """A node `a` that leads back to itself for ever."""
    builder = new_builder().add_node("a", node or note("a", 1)).add_edge(START, "a")
    return builder.add_edge("a", "a")


def bounded(builder: Any, checkpointer: Any, **policy: int) -> Any:
    graph = builder.compile().with_checkpointer(checkpointer)
    return graph.with_recursion_policy(RecursionPolicy(**policy))


def test_policy_below_the_graphs_limit_decides(checkpointer: Any) -> None:
    """Scenario 62."""
    graph = bounded(endless(), checkpointer, max_total_steps=3)
    with pytest.raises(RecursionLimitError) as stopped:
        graph.run_with_thread("t", {})
    assert stopped.value.limit == 3
    assert graph.get_state("t").values.total == 3


def test_policy_above_the_graphs_limit_changes_nothing(checkpointer: Any) -> None:
    """Scenario 62 the other way round."""
    builder = endless().with_recursion_limit(2)
    graph = bounded(builder, checkpointer, max_total_steps=3)
    with pytest.raises(RecursionLimitError) as stopped:
        graph.run_with_thread("t", {})
    assert stopped.value.limit == 2


def test_node_is_not_visited_more_often_than_allowed(checkpointer: Any) -> None:
    """Scenario 63: the third visit is refused, and what was done stands."""
    graph = bounded(endless(), checkpointer, max_visits_per_node=2)
    with pytest.raises(NodeVisitLimitError) as stopped:
        graph.run_with_thread("t", {})
    assert (stopped.value.node_id, stopped.value.limit) == ("a", 2)
    assert graph.get_state("t").values.log == ["a", "a"]
    assert sources(graph, "t") == ["input", "loop", "loop"]


def test_fan_out_counts_each_of_its_activations(checkpointer: Any) -> None:
    """Scenario 64: three Sends, two allowed, and none of them runs."""
    worker = Counted(note("worker"))
    builder = new_builder().add_edge(START, "split").add_node("worker", worker)
    sends = [Send("worker", n) for n in (1, 2, 3)]
    builder.add_node("split", lambda _state: Command(goto=sends))
    graph = bounded(builder, checkpointer, max_visits_per_node=2)
    with pytest.raises(NodeVisitLimitError):
        graph.run_with_thread("t", {})
    assert worker.calls == 0
    assert graph.get_state("t").next_nodes == ["worker"] * 3


def test_visits_count_on_over_resumes(checkpointer: Any) -> None:
    """Decision 6 (D6): a plain resume fails again, a higher limit goes on."""
    graph = bounded(endless(), checkpointer, max_visits_per_node=2)
    for call in (lambda: graph.run_with_thread("t", {}), lambda: graph.resume("t")):
        with pytest.raises(NodeVisitLimitError):
            call()
    raised = graph.with_recursion_policy(RecursionPolicy(max_visits_per_node=5))
    with pytest.raises(NodeVisitLimitError):
        raised.resume("t")
    assert graph.get_state("t").values.log == ["a"] * 5


def test_retry_of_a_failed_node_is_no_visit(checkpointer: Any) -> None:
    """Decision 6: first runs of activations count."""
    builder = add_fan(new_builder(), {"a": Flaky("a", failures=2)})
    graph = bounded(builder, checkpointer, max_visits_per_node=1)
    for call in (lambda: graph.run_with_thread("t", {}), lambda: graph.retry("t")):
        with pytest.raises(NodeFailedError):
            call()
    assert graph.retry("t").state.log == ["a"]


def test_answered_question_is_no_visit(checkpointer: Any) -> None:
    """Decision 6: the node runs again with its answer, as the same activation."""
    builder = add_fan(new_builder(), {"ask": Asker()})
    graph = bounded(builder, checkpointer, max_visits_per_node=1)
    graph.run_with_thread("t", {})
    assert graph.resume("t", Command(resume=1)).state.log == ["ask=1"]


@pytest.mark.usefixtures("empty_registry")
def test_deferred_retry_is_no_visit(checkpointer: Any) -> None:
    """Decision 6 on a worker: the activation was tried before, in an earlier drive."""
    flaky = Flaky("a", error=RetryableError)
    graph = bounded(
        add_fan(new_builder(), {"a": flaky}), checkpointer, max_visits_per_node=1
    )
    graph = graph.with_node_retry(RetryPolicy(initial_interval=60))
    admit(graph)
    assert drive(checkpointer).status is RunStatus.WAITING
    make_due(checkpointer)
    assert drive(checkpointer).status is RunStatus.COMPLETED
    assert flaky.calls == 2


@pytest.mark.usefixtures("empty_registry")
def test_visits_count_on_over_drives(checkpointer: Any) -> None:
    """Decision 6 on workers: each drive is one superstep, and the third is refused."""
    graph = bounded(endless(), checkpointer, max_visits_per_node=2)
    admit(graph)
    one = Quantum(supersteps=1)
    statuses = [drive(checkpointer, one).status for _ in range(3)]
    assert statuses == [RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.FAILED]
    failed = checkpointer.find_thread_run("t")
    assert failed.error["code"] == "runtime.graph.node_visit_limit_reached"
    assert failed.error["node"] == "a"


def test_node_that_a_crash_undid_is_visited_once(checkpointer: Any) -> None:
    """Decision 6: its failed attempt was kept, its activation is the same."""
    store = pointed(checkpointer)

    def crash(_times: int) -> None:
        raise Crash

    builder = add_fan(new_builder(), {"a": Flaky("a", error=RetryableError)})
    graph = bounded(builder, store, max_visits_per_node=1)
    graph = graph.with_node_retry(RetryPolicy(initial_interval=0, jitter=0))
    store.at("before commit", crash)
    with pytest.raises(Crash):
        graph.run_with_thread("t", {})
    store.clear()
    assert graph.resume("t").state.log == ["a"]


def test_node_that_was_not_reached_is_not_visited(checkpointer: Any) -> None:
    """Decision 6: b stood behind the failed a; its first run comes with the retry."""
    builder = add_fan(new_builder(), {"a": Flaky("a"), "b": note("b")})
    builder.add_edge("b", "b").add_edge("a", "b")
    graph = bounded(builder, checkpointer, max_visits_per_node=2)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    with pytest.raises(NodeVisitLimitError):
        graph.retry("t")
    assert graph.get_state("t").values.log == ["a", "b", "b"]


def test_run_deeper_than_allowed_is_refused(checkpointer: Any) -> None:
    """Scenario 66: depth 0 admits no run at all, and none is stored."""
    graph = bounded(add_line(new_builder(), "a"), checkpointer, max_depth=0)
    with pytest.raises(SubAgentDepthError) as refused:
        graph.run_with_thread("t", {})
    assert refused.value.max_depth == 0
    assert graph.get_state("t") is None


def test_top_level_run_is_the_first_level(checkpointer: Any) -> None:
    """Scenarios 65, 66: depth 1 admits it."""
    graph = bounded(add_line(new_builder(), "a"), checkpointer, max_depth=1)
    assert graph.run_with_thread("t", {}).visited == ["a"]


def test_boundary_tells_the_level_of_its_run(checkpointer: Any) -> None:
    """Scenario 88: one frame, the run itself, at depth 0."""
    graph = add_line(new_builder(), "a").compile().with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    metadata = graph.get_state("t").metadata
    (frame,) = metadata["recursion"]
    assert (frame["depth"], frame["run_id"]) == (0, done.run_id)
    assert metadata["source"] == "loop"


def test_run_counts_its_own_steps_only(checkpointer: Any) -> None:
    """EX-05: a thread's second run has the whole limit, and tells which node is due."""
    builder = add_line(new_builder(), "a", "b", "c", "d").with_recursion_limit(5)
    graph = builder.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    assert graph.run_with_thread("t", {}).steps == 4
    loop = endless().with_recursion_limit(5).compile().with_checkpointer(checkpointer)
    with pytest.raises(RecursionLimitError, match=r"limit of 5 steps.*'a'"):
        loop.run_with_thread("loop", {})
    error = checkpointer.find_thread_run("loop").error
    assert error["code"] == "runtime.graph.superstep_limit_reached"
    assert "'a'" in error["message"]
