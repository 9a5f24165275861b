"""Entering a graph at chosen nodes, with payloads."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import END, START, GraphInput
from stateknot.errors import GraphError, MissingNodeError, ValidationError
from stateknot.runtime.events import CollectingSink
from tests.runtime.graphs import new_builder, note_arg


def two_sinks() -> Any:
    builder = new_builder().add_edge(START, "a")
    return builder.add_node("a", note_arg).add_node("b", note_arg).compile()


def test_inputs_for_two_nodes_run_in_one_step() -> None:
    """Scenario 32: each has its own payload."""
    inputs = [GraphInput.start(1), GraphInput.new("b", 2)]
    execution = two_sinks().run_with_inputs({}, inputs)
    assert execution.steps == 1
    assert execution.state.log == ["a:1", "b:2"]


def test_inputs_on_a_thread_run_as_given(checkpointer: Any) -> None:
    """Scenario 32, kept: the input record holds the payloads."""
    graph = two_sinks().with_checkpointer(checkpointer)
    inputs = [GraphInput.new("b", 2), GraphInput.node("a")]
    execution = graph.run_with_thread_inputs("t", {}, inputs)
    assert execution.state.log == ["b:2", "a:None"]
    assert graph.get_state_history("t")[-1].next_nodes == ["b", "a"]


def test_inputs_for_one_node_are_not_merged(checkpointer: Any) -> None:
    """Scenario 33: three activations, in the order of the inputs."""
    graph = two_sinks().with_checkpointer(checkpointer)
    inputs = [GraphInput.new("b", payload) for payload in (3, 1, 3)]
    execution = graph.run_with_thread_inputs("t", {}, inputs)
    assert execution.state.log == ["b:3", "b:1", "b:3"]


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ([GraphInput.node(END)], GraphError),
        ([GraphInput.node("ghost")], MissingNodeError),
        ([], ValidationError),
    ],
)
def test_input_that_cannot_run_is_refused(
    inputs: list[GraphInput], kind: type[GraphError], sink: CollectingSink
) -> None:
    """Scenario 34: before anything happened."""
    graph = two_sinks().with_event_sink(sink)
    with pytest.raises(kind):
        graph.run_with_inputs({}, inputs)
    assert sink.events == []
