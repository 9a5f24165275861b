"""What the builder collects, and the blueprint that it makes of it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from stateknot.errors import GraphError, ValidationError
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.handlers import is_async, takes_context
from stateknot.kernel.vocabulary import END
from tests.kernel.blueprint_samples import builder_of, diamond, handler
from tests.kernel.state_samples import Tally


class Name(StrEnum):
    A = "a"
    B = "b"


async def awaited(state: Tally) -> None:
    """Never called."""


class Caller:
    async def __call__(self, state: Tally) -> None:
        """Never called."""


def pick(state: Tally) -> str:
    return "b"


def test_blueprint_has_edges_and_joins_in_canonical_order() -> None:
    blueprint = diamond()
    assert blueprint.entry == ("a",)
    assert blueprint.edges == {"a": ("b", "c")}
    assert blueprint.waiting == {"d": ("b", "c")}
    assert blueprint.leads == {"a": ("b", "c"), "b": ("d",), "c": ("d",)}


def test_waiting_edges_of_one_join_add_up() -> None:
    builder = builder_of("a b c", "a b").add_waiting_edge("b", "c")
    builder.add_waiting_edge(["a"], "c").add_waiting_edge(["b", "a"], "c")
    assert builder.blueprint().waiting == {"c": ("a", "b")}


def test_sequence_takes_ids_functions_and_pairs() -> None:
    builder = BlueprintBuilder("sample", state=Tally).set_entry("handler")
    builder.add_node("last", handler)
    builder.add_sequence([handler, ("second", pick), "last", END])
    blueprint = builder.blueprint()
    assert list(blueprint.nodes) == ["last", "handler", "second"]
    assert blueprint.edges == {
        "handler": ("second",),
        "second": ("last",),
        "last": (END,),
    }


def test_decorator_adds_the_function_under_its_name() -> None:
    builder = BlueprintBuilder("sample", state=Tally).set_entry("pick")

    @builder.node
    def first(state: Tally) -> None:
        """Never called."""

    builder.node(id="pick", timeout=timedelta(seconds=5))(pick)
    nodes = builder.blueprint().nodes
    assert nodes["first"].handler is first
    assert nodes["pick"].timeout_seconds == 5


@pytest.mark.parametrize(
    "routes",
    [
        {"a": "b", "b": "b"},
        MappingProxyType({Name.A: "b", Name.B: Name.B}),
    ],
)
def test_routes_are_read_from_any_mapping(routes: Any) -> None:
    """Else only its labels would be seen, and each would lead to itself."""
    builder = builder_of("a b").add_conditional_edges("a", pick, routes)
    found = builder.blueprint().routers["a"].routes
    assert found == {"a": "b", "b": "b"}
    assert {type(text) for pair in found.items() for text in pair} == {str}


def test_routes_given_as_ids_lead_to_themselves() -> None:
    builder = builder_of("a b").add_conditional_edges("a", pick, ["b", END])
    assert builder.blueprint().routers["a"].routes == {"b": "b", END: END}


def test_defaults_set_only_what_is_given() -> None:
    builder = builder_of("a").with_recursion_limit(7).with_node_timeout(3)
    blueprint = builder.set_defaults(parallel=True).blueprint()
    assert (blueprint.recursion_limit, blueprint.node_timeout_seconds) == (7, 3)
    assert (blueprint.is_parallel, blueprint.max_concurrency) == (True, None)


@pytest.mark.parametrize("limit", [None, 0])
def test_no_concurrency_limit_is_none(limit: int | None) -> None:
    """D13: 0 through the defaults is no limit, not a crash."""
    assert builder_of("a").with_parallel(limit).blueprint().max_concurrency is None
    builder = builder_of("a").set_defaults(max_concurrency=0)
    assert builder.blueprint().max_concurrency is None


def test_later_changes_do_not_reach_a_compiled_blueprint() -> None:
    builder = diamond_builder()
    blueprint = builder.blueprint()
    builder.add_node("late", handler).add_edge("d", "late")
    assert "late" not in blueprint.nodes
    assert "d" not in blueprint.edges


def diamond_builder() -> BlueprintBuilder:
    builder = builder_of("a b c d").add_edge("a", ["b", "c"])
    return builder.add_waiting_edge(["b", "c"], "d")


def test_every_issue_is_told_with_the_first() -> None:
    builder = builder_of("a b", "nowhere", reducer=None)
    builder.add_edge("a", "missing").add_waiting_edge([], "b")
    with pytest.raises(GraphError) as caught:
        builder.blueprint()
    kinds = [issue.kind for issue in caught.value.issues]
    assert kinds == ["MissingNode", "MissingNode", "Validation"]
    assert caught.value.issues[0] is caught.value
    assert str(caught.value).count("also:") == 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda state: state, False),
        (lambda state, ctx: (state, ctx), True),
        (lambda state, other: (state, other), True),
        (lambda state, ctx=None: (state, ctx), True),
        (lambda state, n=3: (state, n), False),
        (lambda state, ctx, n=3: (state, ctx, n), True),
        (lambda *arguments: arguments, True),
        (lambda state, *, n=3: (state, n), False),
        (handler, True),
        (pick, False),
        (Caller(), False),
        (print, True),
    ],
)
def test_handler_takes_the_context_if_it_asks_for_it(
    function: Any, expected: bool
) -> None:
    """A loop's variable bound as a default must not become the context."""
    assert takes_context("work", function) is expected


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda a, b, c: (a, b, c),
        lambda *, state: state,
        lambda a, *, b: (a, b),
    ],
)
def test_handler_that_cannot_be_called_is_refused(function: Any) -> None:
    with pytest.raises(ValidationError, match="'work'"):
        takes_context("work", function)


@pytest.mark.parametrize(
    ("function", "expected"),
    [(awaited, True), (Caller(), True), (pick, False), (handler, False)],
)
def test_async_handler_is_known(function: Any, expected: bool) -> None:
    assert is_async(function) is expected
