"""What a node may return, and what becomes of values that do not fit."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import (
    START,
    GraphBuilder,
    RetryableError,
    RetryPolicy,
    RunStatus,
    last_value,
)
from stateknot.errors import NodeFailedError, ReducerError
from tests.runtime.clock import FakeClock
from tests.runtime.graphs import PATIENCE, Tally, add_fan, new_builder, note


class Cart(BaseModel):
    """Fields without reducers, one of them of any type; `owner` has one writer."""

    items: list[int] = []
    data: Any = None
    owner: Annotated[str, last_value] = ""


def graph_of(checkpointer: Any, **nodes: Any) -> Any:
    graph = add_fan(new_builder(state=Cart), nodes).compile()
    return graph.with_checkpointer(checkpointer)


def fail(graph: Any, state: Any = None) -> NodeFailedError:
    """Run thread "t", which must fail; give the error."""
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", state or {})
    return failed.value


def test_invalid_value_leaves_the_last_good_state(checkpointer: Any) -> None:
    """ST-01: the boundary names the field, and the whole history reads."""
    graph = graph_of(checkpointer, work=lambda _state: {"items": None})
    error = fail(graph, {"items": [1]})
    assert isinstance(error, ReducerError)
    assert (error.code, "items" in str(error)) == ("node.update_refused", True)
    head = graph.get_state("t")
    assert (head.values, head.metadata["failed_node"]) == (Cart(items=[1]), "work")
    history = graph.get_state_history("t")
    assert [snapshot.values for snapshot in history] == [Cart(items=[1])] * 2


class UnprintableError(Exception):
    """Holds what cannot be copied or pickled, and cannot say what it is."""

    def __init__(self) -> None:
        super().__init__(threading.Lock())

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raise_unprintable(_state: Cart) -> None:
    raise UnprintableError


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (lambda _state: object(), "object"),
        (lambda _state: {"data": object()}, "data"),
        (lambda _state: {"items": [threading.Lock()]}, "items"),
        (raise_unprintable, "UnprintableError"),
    ],
)
def test_what_cannot_be_stored_is_a_failure(
    handler: Any, told: str, checkpointer: Any
) -> None:
    """ST-05: with type and text in the boundary, and the next thread runs."""
    graph = graph_of(checkpointer, work=handler)
    assert told in str(fail(graph))
    head = graph.get_state("t")
    assert (head.values, head.metadata["failed_node"]) == (Cart(), "work")
    assert head.metadata["error"]["type"]
    other = graph_of(checkpointer, work=lambda _state: {"data": 1})
    assert other.run_with_thread("next", {}).status is RunStatus.COMPLETED


def test_update_that_cannot_be_copied_reaches_no_reducer(checkpointer: Any) -> None:
    """ST-05: with a reducer for the whole state, too."""

    def fold(_state: Cart, _updates: Any) -> Any:
        raise AssertionError("not called")

    builder = GraphBuilder("tests.whole", state=Cart, reducer=fold)
    builder.add_node("work", lambda _state: {"data": threading.Lock()})
    graph = builder.add_edge(START, "work").compile()
    error = fail(graph.with_checkpointer(checkpointer))
    assert (error.node_id, error.code) == ("work", "node.update_refused")


def test_unstorable_result_behind_a_failure_runs_again(checkpointer: Any) -> None:
    """ST-05: a result that could not be kept fails in its turn, and is named."""

    def first(_state: Cart) -> None:
        raise RetryableError("a")

    nodes = {"a": first, "b": lambda _state: {"data": object()}}
    graph = add_fan(new_builder(state=Cart), nodes).with_parallel().compile()
    graph = graph.with_checkpointer(checkpointer)
    assert fail(graph).node_id == "a"
    graph.update_state("t", {}, as_node="a")
    with pytest.raises(NodeFailedError, match="data"):
        graph.retry("t")


class InPlace:
    """Branch a changes what it was given and fails once; branch b only looks."""

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.seen: dict[str, list[list[int]]] = {"a": [], "b": []}

    def a(self, state: Cart) -> dict[str, Any]:
        self.seen["a"].append(list(state.items))
        state.items.append(9)
        self.changed.set()
        if len(self.seen["a"]) == 1:
            raise RetryableError("once")
        return {}

    def b(self, state: Cart) -> None:
        assert self.changed.wait(PATIENCE)
        self.seen["b"].append(list(state.items))


@pytest.mark.parametrize("is_parallel", [False, True])
def test_change_in_place_reaches_nobody(
    checkpointer: Any, clock: FakeClock, is_parallel: bool
) -> None:
    """ST-07: not the sibling, not the retry, not the checkpoints."""
    nodes = InPlace()
    graph = graph_of(checkpointer, a=nodes.a, b=nodes.b)
    graph = graph.with_node_retry(RetryPolicy())._with(clock=clock)
    graph = graph.with_parallel() if is_parallel else graph
    assert graph.run_with_thread("t", {"items": [1]}).state.items == [1]
    assert nodes.seen == {"a": [[1], [1]], "b": [[1]]}
    values = [snapshot.values.items for snapshot in graph.get_state_history("t")]
    assert values == [[1], [1]]


def merge_in_place(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    old.update(new)
    return old


class Shelf(BaseModel):
    stock: Annotated[dict[str, int], merge_in_place] = {}


def test_reducer_that_works_in_place_is_stored(checkpointer: Any) -> None:
    """ST-07: it is given a copy, so that old checkpoints and the change both stand."""
    builder = add_fan(new_builder(state=Shelf), {"a": lambda _s: {"stock": {"a": 1}}})
    builder.add_node("b", lambda _s: {"stock": {"b": 2}}).add_edge("a", "b")
    graph = builder.compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    stock = [snapshot.values.stock for snapshot in graph.get_state_history("t")]
    assert stock == [{"a": 1, "b": 2}, {"a": 1}, {}]


def test_returned_value_can_be_changed_without_effect(checkpointer: Any) -> None:
    """ST-07: what a node returned is its own again afterwards."""
    shared = [1]

    def second(_state: Cart) -> None:
        shared.append(2)

    builder = add_fan(new_builder(state=Cart), {"a": lambda _s: {"items": shared}})
    graph = builder.add_node("b", second).add_edge("a", "b").compile()
    graph = graph.with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.items == [1]
    assert graph.get_state("t").values.items == [1]


@pytest.mark.parametrize("result", [None, {}])
def test_node_that_returns_nothing_changes_nothing(
    result: Any, checkpointer: Any
) -> None:
    """ST-09."""
    graph = graph_of(checkpointer, work=lambda _state: result)
    execution = graph.run_with_thread("t", {"items": [1]})
    assert (execution.status, execution.visited) == (RunStatus.COMPLETED, ["work"])
    assert execution.state == Cart(items=[1])


def test_unknown_field_is_named(checkpointer: Any) -> None:
    """ST-09: with the node that returned it."""
    graph = graph_of(checkpointer, work=lambda _state: {"typo": 1})
    text = str(fail(graph))
    assert "'typo'" in text
    assert "'work'" in text


NOT_STORED = [
    float("nan"),
    float("-inf"),
    "nul\x00",
    "\ud800",
    2**53,
    {"deep": [{1: "a number as key"}]},
    {1, 2},
]


@pytest.mark.parametrize("value", NOT_STORED, ids=repr)
def test_value_outside_the_profile_is_refused(value: Any, checkpointer: Any) -> None:
    """Decision 12: at the node that returned it, with the path, on every store."""
    graph = graph_of(checkpointer, work=lambda _state: {"data": value})
    error = fail(graph)
    assert (error.node_id, error.code) == ("work", "node.update_refused")
    assert "data" in str(error)
    assert graph.get_state("t").values == Cart()


def test_field_with_one_writer_refuses_two(checkpointer: Any) -> None:
    """Decision 13: the failure names the field and both nodes, and stores neither."""
    nodes = {"ann": lambda _s: {"owner": "Ann"}, "bob": lambda _s: {"owner": "Bob"}}
    graph = graph_of(checkpointer, **nodes)
    text = str(fail(graph))
    assert all(part in text for part in ("'owner'", "'ann'", "'bob'"))
    assert graph.get_state("t").values == Cart()


def test_returned_model_overwrites_its_set_fields(checkpointer: Any) -> None:
    """A model is an update of the fields that were given to it, and of no other."""
    graph = graph_of(checkpointer, work=lambda _state: Cart(items=[2]))
    execution = graph.run_with_thread("t", {"items": [1], "data": "kept"})
    assert execution.state == Cart(items=[2], data="kept")


def test_checkpoints_keep_their_state(checkpointer: Any) -> None:
    """ST-07: an older boundary still shows what it held when later ones grew."""
    builder = add_fan(new_builder(), {"a": note("a")}).add_node("b", note("b"))
    graph = builder.add_edge("a", "b").compile().with_checkpointer(checkpointer)
    graph.run_with_thread("t", Tally(log=["start"]))
    logs = [snapshot.values.log for snapshot in graph.get_state_history("t")]
    assert logs == [["start", "a", "b"], ["start", "a"], ["start"]]
