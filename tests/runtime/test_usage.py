"""What a run used, over both stores: every try once, wherever its result is used."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import NodeContext, ResumeTarget
from stateknot.errors import NodeFailedError
from tests.runtime.graphs import Flaky, add_fan, new_builder


def spend(_state: Any, ctx: NodeContext) -> dict[str, Any]:
    ctx.report_usage(tokens=5)
    return {"total": 1}


def spend_and_fail(_state: Any, ctx: NodeContext) -> None:
    ctx.report_usage(tokens=2)
    raise ValueError("after spending")


def used(graph: Any, store: Any) -> dict[str, Any]:
    run = store.find_thread_run("t")
    return dict(store.measure_usage(run.id).amounts)


def test_kept_result_in_a_branch_is_counted_once(checkpointer: Any) -> None:
    """Decision 16: the copy that a branch carries used nothing."""
    builder = add_fan(new_builder(), {"a": Flaky("a"), "b": spend}).with_parallel()
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    failed_at = graph.get_state("t").config["checkpoint_id"]
    graph.retry("t")
    branched = graph.resume_from("t", ResumeTarget.checkpoint(failed_at))
    assert branched.visited == ["a", "b"]
    assert used(graph, checkpointer) == {"tokens": 5}


def test_failed_try_counts(checkpointer: Any) -> None:
    builder = add_fan(new_builder(), {"a": spend_and_fail})
    graph = builder.compile().with_checkpointer(checkpointer)
    for call in (lambda: graph.run_with_thread("t", {}), lambda: graph.retry("t")):
        with pytest.raises(NodeFailedError):
            call()
    assert used(graph, checkpointer) == {"tokens": 4}
