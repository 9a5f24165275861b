"""Where a snapshot says it stands, and who else sees what one store keeps."""

from __future__ import annotations

from typing import Any

from stateknot.kernel.vocabulary import DurabilityMode
from stateknot.runtime.config import RunConfig
from tests.runtime.families import line
from tests.runtime.graphs import note


def test_newest_snapshot_names_itself_and_its_parent(checkpointer: Any) -> None:
    """Scenario 182."""
    graph = line("tests.two", {"a": note("a"), "b": note("b")})
    graph = graph.with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    newest = graph.get_state("t")
    assert newest.config == {
        "thread_id": "t",
        "checkpoint_id": done.checkpoint_id,
        "namespace": [],
    }
    parent = newest.parent_config["checkpoint_id"]
    assert graph.get_state("t", parent).config["checkpoint_id"] == parent


def test_root_has_no_parent_and_unknown_threads_no_snapshot(checkpointer: Any) -> None:
    """Scenario 182."""
    graph = line("tests.one", {"a": note("a")}).with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    assert graph.get_state_history("t")[-1].parent_config is None
    assert graph.get_state("unknown") is None
    assert graph.get_state_history("unknown") == []


def test_two_graphs_over_one_store_see_the_same_thread(checkpointer: Any) -> None:
    """Scenario 183: a copy of a graph shares the store, and what is put in it."""
    graph = line("tests.one", {"a": note("a")}).with_checkpointer(checkpointer)
    copy = graph.with_durability("async")
    done = graph.run_with_thread("t", {})
    assert copy.get_state("t").config["checkpoint_id"] == done.checkpoint_id
    again = copy.run_with_thread("t", {"log": ["x"]})
    assert graph.get_state("t").values == again.state
    assert [s.values.log for s in reversed(graph.get_state_history("t"))] == [
        [],
        ["a"],
        ["x"],
        ["x", "a"],
    ]


def test_runs_are_durable_before_they_go_on_by_default() -> None:
    """Scenario 181."""
    assert RunConfig().durability is DurabilityMode.SYNC
