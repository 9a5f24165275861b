"""Status rows: where runs stand, and which of them a bounded store keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stateknot import Command, RunStatus, shared_subgraph
from stateknot.errors import NodeFailedError
from stateknot.runtime.statuses import MemoryStatusStore, RunStatusRow
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import Asker, Flaky, note


@pytest.fixture
def statuses() -> MemoryStatusStore:
    """Give an empty store of statuses."""
    return MemoryStatusStore()


def row(run_id: str, status: str = "running", thread_id: str = "t") -> RunStatusRow:
    return RunStatusRow(
        run_id=run_id, graph_id="g", thread_id=thread_id, status=RunStatus(status)
    )


def test_completed_run_has_its_row(checkpointer: Any, statuses: Any) -> None:
    """Scenarios 167 and 177."""
    graph = line("tests.two", {"a": note("a"), "b": note("b")})
    graph = graph.with_checkpointer(checkpointer).with_status_store(statuses)
    done = graph.run_with_thread("t", {})
    (found,) = statuses.list_by_thread("t")
    assert found == statuses.get(done.run_id)
    assert (found.status, found.graph_id) == (RunStatus.COMPLETED, "tests.two")
    assert (found.current_step, done.steps) == (2, 2)
    assert (found.active_nodes, found.pending_interrupts) == ((), ())
    assert found.started_at <= found.ended_at <= found.updated_at
    assert (found.error, found.checkpoint_id) == (None, done.checkpoint_id)


def test_failed_run_has_its_error(checkpointer: Any, statuses: Any) -> None:
    """Scenario 167; a retry takes the error back."""
    graph = line("tests.f", {"a": Flaky("a")}).with_checkpointer(checkpointer)
    graph = graph.with_status_store(statuses)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    found = statuses.get(failed.value.run_id)
    assert (found.status, found.is_terminal) == (RunStatus.FAILED, True)
    assert "failed on call 1" in found.error
    graph.retry("t")
    again = statuses.get(found.run_id)
    assert (again.status, again.error) == (RunStatus.COMPLETED, None)
    assert again.started_at == found.started_at


def test_paused_run_names_its_questions(checkpointer: Any, statuses: Any) -> None:
    """Scenario 178: interrupted is not terminal, and has no end."""
    graph = line("tests.ask", {"ask": Asker()}).with_checkpointer(checkpointer)
    graph = graph.with_status_store(statuses)
    paused = graph.run_with_thread("t", {})
    found = statuses.get(paused.run_id)
    assert found.status is RunStatus.INTERRUPTED
    assert found.pending_interrupts == (paused.interrupts[0].id,)
    assert (found.is_terminal, found.ended_at) == (False, None)
    graph.resume("t", Command(resume=1))
    assert statuses.get(paused.run_id).pending_interrupts == ()


def test_row_of_a_child_knows_its_root(checkpointer: Any, statuses: Any) -> None:
    """Scenario 169 (D16)."""
    child = line("tests.c", {"c": note("c")}).with_status_store(statuses)
    middle = line("tests.m", {"in": shared_subgraph(child)})
    done = parent_of(middle, checkpointer).run_with_thread("t", {})
    (found,) = statuses.list_by_thread("t")
    (between,) = checkpointer.list_children(done.run_id)
    assert (found.root_run_id, found.parent_run_id) == (done.run_id, between.id)
    assert found.namespace == ("2:0:child", "1:0:in")


def test_store_that_fails_does_not_fail_the_run(checkpointer: Any) -> None:
    class Broken(MemoryStatusStore):
        def put(self, row: RunStatusRow) -> None:
            raise OSError("full")

        def get(self, run_id: str) -> RunStatusRow | None:
            raise OSError("away")

    graph = line("tests.a", {"a": note("a")}).with_checkpointer(checkpointer)
    done = graph.with_status_store(Broken()).run_with_thread("t", {})
    assert done.state.log == ["a"]


def test_fresh_row_is_its_own_root() -> None:
    """Scenario 178."""
    fresh = RunStatusRow(run_id="r", graph_id="g")
    assert (fresh.root_run_id, fresh.current_step, fresh.is_terminal) == ("r", 0, False)


@pytest.mark.parametrize("status", list(RunStatus))
def test_terminal_are_completed_failed_cancelled(status: RunStatus) -> None:
    """Scenario 178."""
    is_end = status in ("completed", "failed", "cancelled")
    assert row("r", status).is_terminal is is_end


def test_cap_evicts_the_oldest_that_ended() -> None:
    """Scenario 167."""
    store = MemoryStatusStore(max_runs=3)
    for item in (row("a"), row("b", "completed"), row("c", "failed"), row("d")):
        store.put(item)
    assert [r.run_id for r in store.list_by_thread("t")] == ["a", "c", "d"]


def test_cap_evicts_the_oldest_when_none_ended() -> None:
    """Scenario 167: paused runs have not ended."""
    store = MemoryStatusStore(max_runs=2)
    for item in (row("a"), row("b", "interrupted"), row("c")):
        store.put(item)
    assert [r.run_id for r in store.list_by_thread("t")] == ["b", "c"]


def test_overwrite_evicts_nothing() -> None:
    """Scenario 167."""
    store = MemoryStatusStore(max_runs=2)
    for item in (row("a", "completed"), row("b"), row("b", "completed")):
        store.put(item)
    assert [r.run_id for r in store.list_by_thread("t")] == ["a", "b"]


def test_run_that_moves_is_found_on_its_new_thread() -> None:
    """Section 8.3."""
    store = MemoryStatusStore()
    store.put(row("a"))
    store.put(replace(row("a"), thread_id="other"))
    assert store.list_by_thread("t") == []
    assert [r.run_id for r in store.list_by_thread("other")] == ["a"]


def test_store_of_no_runs_keeps_nothing() -> None:
    """Section 8.3."""
    store = MemoryStatusStore(max_runs=0)
    store.put(row("a"))
    assert store.get("a") is None
