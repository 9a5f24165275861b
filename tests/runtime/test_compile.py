"""What a builder refuses to compile, and what it accepts."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import END, START, CompiledGraph
from stateknot.errors import (
    GraphError,
    MissingNodeError,
    MissingStartError,
    ValidationError,
)
from tests.runtime.graphs import add_fan, add_line, new_builder, note


def refuse(builder: Any) -> GraphError:
    """Compile a graph that must not compile; give the first error."""
    with pytest.raises(GraphError) as refused:
        builder.compile()
    return refused.value


class Plain(BaseModel):
    value: int = 0


def test_field_without_reducer_is_overwritten() -> None:
    """Replaces scenario 1 (decision 13): a reducer may be left out."""
    builder = new_builder(state=Plain)
    builder.add_node("a", lambda _state: {"value": 1})
    builder.add_node("b", lambda state: {"value": state.value + 10})
    builder.add_sequence(START, "a", "b")
    assert builder.compile().run({"value": 5}).state == Plain(value=11)


def test_reducer_without_a_name_is_a_validation_error() -> None:
    """What is left of scenario 1: a digest must be able to name the reducer."""

    class Unnamed(BaseModel):
        value: Annotated[int, lambda old, new: old + new] = 0

    error = refuse(add_line(new_builder(state=Unnamed), "a"))
    assert isinstance(error, ValidationError)
    assert "value" in error.message


def test_graph_without_an_edge_from_start_is_missing_start() -> None:
    """Scenario 2."""
    error = refuse(new_builder().add_node("a", note("a")))
    assert isinstance(error, MissingStartError)
    assert error.kind == "MissingStart"


def test_edge_to_an_undefined_node_is_missing_node() -> None:
    """Scenario 3: the message names it."""
    error = refuse(add_line(new_builder(), "a").add_edge("a", "ghost"))
    assert isinstance(error, MissingNodeError)
    assert "'ghost'" in error.message


def test_command_node_with_a_static_edge_is_refused() -> None:
    """Scenario 4."""
    builder = add_line(new_builder(), "a").add_command_node("choose", note("choose"))
    error = refuse(builder.add_edge("choose", "a"))
    assert isinstance(error, ValidationError)
    assert "'choose'" in error.message


def test_node_with_static_and_conditional_edges_is_refused() -> None:
    """Scenario 5."""
    builder = add_line(new_builder(), "a", "b")
    error = refuse(builder.add_conditional_edges("a", lambda _s: "b", {"b": "b"}))
    assert isinstance(error, ValidationError)
    assert "'a'" in error.message


def test_valid_graph_compiles() -> None:
    """Scenario 6."""
    graph = add_line(new_builder("tests.valid"), "a", "b").compile()
    assert isinstance(graph, CompiledGraph)
    assert (graph.graph_id, graph.version) == ("tests.valid", "1.0.0")


@pytest.mark.parametrize("edge", [(END, "a"), ("a", START)])
def test_edge_from_end_or_into_start_is_missing_node(edge: tuple[str, str]) -> None:
    """Scenario 7: not a validation error."""
    error = refuse(add_line(new_builder(), "a").add_edge(*edge))
    assert isinstance(error, MissingNodeError)
    assert error.kind == "MissingNode"


def test_entry_at_end_is_refused() -> None:
    """Scenario 8."""
    error = refuse(new_builder().add_node("a", note("a")).add_edge(START, END))
    assert isinstance(error, ValidationError)


def test_waiting_edge_into_end_is_missing_node() -> None:
    """Scenario 9."""
    error = refuse(add_line(new_builder(), "a").add_waiting_edge(["a"], END))
    assert isinstance(error, MissingNodeError)


def test_node_id_added_twice_is_refused() -> None:
    """Replaces scenario 10: the last definition does not win silently."""
    error = refuse(add_line(new_builder(), "a").add_node("a", note("other")))
    assert "added twice" in error.message


def test_second_static_edge_adds_a_target() -> None:
    """Replaces scenario 10: two edges are a fan-out, in canonical order."""
    builder = add_line(new_builder(), "a")
    for name in ("z", "b"):
        builder.add_node(name, note(name)).add_edge("a", name)
    assert builder.compile().run({}).visited == ["a", "b", "z"]


def test_edge_added_again_leads_there_once() -> None:
    """Replaces scenario 10: the same edge twice is one edge."""
    builder = add_line(new_builder(), "a", "b").add_edge("a", "b")
    assert builder.compile().run({}).visited == ["a", "b"]


def test_sequence_runs_in_the_order_given() -> None:
    """Scenario 11."""
    execution = add_line(new_builder(), "c", "a", "b").compile().run({})
    assert execution.visited == ["c", "a", "b"]
    assert execution.state.log == ["c", "a", "b"]


def test_all_issues_are_told_at_once() -> None:
    """The first error carries the others, so a graph is mended in one go."""
    builder = new_builder().add_node("a", note("a")).add_edge("a", "ghost")
    error = refuse(builder)
    assert [issue.kind for issue in error.issues] == ["MissingStart", "MissingNode"]


@pytest.mark.parametrize(
    ("router", "routes"), [(lambda _state: "b", {}), (None, {"b": "b"})]
)
def test_conditional_edge_without_a_rule_is_refused(router: Any, routes: Any) -> None:
    """EX-10: an edge with an empty condition is not "always taken"."""
    builder = add_fan(new_builder(), {"a": note("a")}).add_node("b", note("b"))
    error = refuse(builder.add_conditional_edges("a", router, routes))
    assert isinstance(error, ValidationError)
    assert "'a'" in error.message
