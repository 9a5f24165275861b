"""What is wrong with a graph before it is compiled: the checks of section 2.1."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import GraphError, MissingNodeError, MissingStartError
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.vocabulary import END, START
from tests.kernel.blueprint_samples import builder_of, handler
from tests.kernel.state_samples import Tally


def issues_of(builder: BlueprintBuilder) -> list[GraphError]:
    with pytest.raises(GraphError) as caught:
        builder.blueprint()
    return list(caught.value.issues)


def choose(state: Tally) -> str:
    return "b"


async def choose_later(state: Tally) -> str:
    return "b"


def test_graph_without_a_start_is_refused() -> None:
    builder = BlueprintBuilder("sample", state=Tally).add_node("a", handler)
    (issue,) = issues_of(builder)
    assert isinstance(issue, MissingStartError)
    assert "add_edge(START" in issue.message


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (lambda b: b.set_entry(END), "Validation", "END"),
        (lambda b: b.set_entry("x"), "MissingNode", "'x'"),
        (lambda b: b.add_edge("x", "a"), "MissingNode", "'x'"),
        (lambda b: b.add_edge("a", "x"), "MissingNode", "'x'"),
        (lambda b: b.add_edge("a", START), "MissingNode", START),
        (lambda b: b.add_edge(END, "a"), "MissingNode", END),
        (lambda b: b.add_waiting_edge(["a"], "x"), "MissingNode", "'x'"),
        (lambda b: b.add_waiting_edge(["x"], "b"), "MissingNode", "'x'"),
        (lambda b: b.add_waiting_edge(["a"], END), "MissingNode", END),
        (lambda b: b.add_waiting_edge([], "b"), "Validation", "waits for nothing"),
        (lambda b: b.add_node("a", handler), "DuplicateNode", "added twice"),
        (lambda b: b.add_node(START, handler), "Validation", "reserved"),
        (lambda b: b.add_node(END, handler), "Validation", "reserved"),
        (lambda b: b.add_barrier_relief("a", "b", "x"), "MissingNode", "'x'"),
        (lambda b: b.add_barrier_relief("x", "a", "j"), "MissingNode", "'x'"),
        (lambda b: b.add_barrier_relief("a", "b", "b"), "Validation", "waits for"),
        (
            lambda b: b.add_command_node("c", handler, destinations=["x"]),
            "MissingNode",
            "'x'",
        ),
    ],
)
def test_fault_is_told_by_kind_and_place(change: Any, kind: str, text: str) -> None:
    builder = builder_of("a b j").add_waiting_edge(["b"], "j")
    change(builder)
    (issue,) = issues_of(builder)
    assert issue.kind == kind
    assert text in issue.message


@pytest.mark.parametrize(
    ("source", "router", "routes", "text"),
    [
        ("a", choose, {"b": "x"}, "'x'"),
        ("x", choose, {"b": "b"}, "'x'"),
        ("a", choose, {}, "no rule"),
        ("a", choose, None, "no rule"),
        ("a", "choose", {"b": "b"}, "no rule"),
        ("a", choose_later, {"b": "b"}, "async"),
        ("b", choose, {"a": "a"}, "plain edges and conditional"),
    ],
)
def test_fault_of_a_router_is_told(
    source: str, router: Any, routes: Any, text: str
) -> None:
    """EX-10: an edge without a rule is refused, not always taken."""
    builder = builder_of("a b").add_edge("b", END)
    builder.add_conditional_edges(source, router, routes)
    (issue,) = issues_of(builder)
    assert text in issue.message


def test_start_has_no_router() -> None:
    """Section 2.1, rule 4."""
    builder = builder_of("a").add_conditional_edges(START, choose, {"b": "a"})
    assert issues_of(builder)[0].kind == "MissingNode"


def test_node_with_two_routers_is_refused() -> None:
    builder = builder_of("a b").add_conditional_edges("a", choose, ["b"])
    (issue,) = issues_of(builder.add_conditional_edges("a", choose, ["b"]))
    assert "two routers" in issue.message


def test_join_that_a_router_never_leads_to_is_refused() -> None:
    """PF-02: it could wait for ever."""
    builder = builder_of("a b j").add_conditional_edges("a", choose, ["b"])
    (issue,) = issues_of(builder.add_waiting_edge(["a"], "j"))
    assert "never leads there" in issue.message


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.add_edge("c", "b"),
        lambda b: b.add_waiting_edge(["c"], "b"),
        lambda b: b.add_conditional_edges("c", choose, ["b"]),
    ],
)
def test_command_node_with_edges_is_refused(change: Any) -> None:
    """Section 2.1, rule 6."""
    builder = builder_of("a b").add_command_node("c", handler)
    change(builder)
    (issue,) = issues_of(builder)
    assert "also has edges" in issue.message


def test_missing_node_error_names_what_there_is() -> None:
    (issue,) = issues_of(builder_of("a b").add_edge("a", "x"))
    assert isinstance(issue, MissingNodeError)
    assert "a, b" in issue.message
