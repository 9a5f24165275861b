"""What a barrier of a closed definition admits, over both stores.

Scenarios are those of spec/composition.md, section 5.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from stateknot import Command, CompiledGraph, Interrupt, NodeContext, Timer
from stateknot.composition import GraphDefinition
from stateknot.errors import (
    MissingRouteError,
    NodeFailedError,
    ReducerError,
    RoutingError,
    SuccessorParallelismExceededError,
    UndeclaredRouteError,
)
from stateknot.kernel.limits import MAXIMUM_QUESTIONS
from tests.kernel.composition_samples import compose_vector
from tests.kernel.graph_samples import Json, composition_vectors, end, graph, node
from tests.runtime.composed import LOOP_3, VECTORS, Step, last
from tests.runtime.drives import admit, drive
from tests.runtime.graphs import PATIENCE

pytestmark = pytest.mark.usefixtures("empty_registry")


class State(BaseModel):
    log: list[str] = []


class Update(BaseModel):
    add: str


def added(state: State, updates: Any) -> dict[str, Any]:
    """The reducer: every update's text, with its node."""
    return {"log": [*state.log, *(f"{name}:{u['add']}" for name, u in updates)]}


def say(_state: State) -> dict[str, str]:
    return {"add": "x"}


def closed(definition: Json, reducer: Any = added, **handlers: Any) -> CompiledGraph:
    """A closed definition; nodes without a handler add an `x`."""
    compiled = GraphDefinition.compile(**definition)
    given = {one.node_id: handlers.get(one.node_id, say) for one in compiled.nodes}
    return CompiledGraph.from_definition(
        compiled, handlers=given, state=State, update=Update, reducer=reducer
    )


def fan(*nodes: Json, ends: int = 1, **options: Any) -> Json:
    """Nodes that are all entered, and ends `end_0` and so on for them to lead to."""
    leads = [end(f"end_{number}") for number in range(ends)]
    return graph([*nodes, *leads], [one["node_id"] for one in nodes], **options)


@pytest.mark.parametrize("first", ["alpha", "beta"])
def test_order_of_completion_changes_nothing(first: str, checkpointer: Any) -> None:
    """Scenarios 62, 89: whoever finishes first, updates fold in node order."""
    done = threading.Event()

    def in_turn(_state: State, ctx: NodeContext) -> dict[str, str]:
        local = ctx.source.node_id
        if local == first:
            done.set()
        assert done.wait(PATIENCE)
        return {"add": local}

    composition = compose_vector(composition_vectors()["parallel_body_order_and_join"])
    ran = CompiledGraph.from_definition(
        composition,
        handlers={"alpha": in_turn, "beta": in_turn, "join": say, "end": say},
        state=State,
        update=Update,
        reducer=added,
    )
    ran = ran.with_parallel().with_checkpointer(checkpointer)
    log = ran.run_with_thread("t", {}).state.log
    assert [entry.split(":")[1] for entry in log] == ["alpha", "beta", "x", "x"]
    assert log[0].split(":")[0] < log[1].split(":")[0]


@pytest.mark.parametrize("label", ["nonsense", "again", "__end__"])
def test_label_of_neither_kind_is_an_undeclared_route(
    label: str, checkpointer: Any
) -> None:
    """Scenario 63, decision 14: neither a local label nor a generated id."""
    composed = CompiledGraph.from_definition(
        compose_vector(VECTORS[LOOP_3]),
        handlers={
            "work": lambda _s: {"step": "x"},
            "decide": lambda _s: Command(route=label),
            "finish": lambda _s: None,
            "exhausted": lambda _s: None,
        },
        state=Step,
        update=Step,
        reducer=last,
    ).with_checkpointer(checkpointer)
    with pytest.raises(UndeclaredRouteError) as failed:
        composed.run_with_thread("t", {})
    assert failed.value.code == "node.undeclared_route"
    assert repr(label) in str(failed.value)
    assert composed.get_state("t").metadata["source"] == "failure"


def test_node_that_must_choose_and_does_not_is_refused(checkpointer: Any) -> None:
    """Scenario 63: no control at all."""
    definition = fan(node("a", routes={"yes": ["end_0"]}))
    ran = closed(definition).with_checkpointer(checkpointer)
    with pytest.raises(MissingRouteError, match="must choose a route"):
        ran.run_with_thread("t", {})


def test_node_that_must_wait_and_does_not_is_refused(checkpointer: Any) -> None:
    ran = closed(fan(node("a", wait_to=["end_0"]))).with_checkpointer(checkpointer)
    with pytest.raises(MissingRouteError, match="it may wait"):
        ran.run_with_thread("t", {})


def test_terminal_output_with_a_sibling_is_refused(checkpointer: Any) -> None:
    """Scenario 64: TerminalNotExclusive, for an explicit output."""
    definition = graph([end("a"), end("b")], ["a", "b"])
    ran = closed(definition, b=lambda _s: Command(output=1))
    ran = ran.with_checkpointer(checkpointer)
    with pytest.raises(RoutingError, match="terminal output while other nodes"):
        ran.run_with_thread("t", {})
    assert ran.get_state("t").next_nodes == ["b"]


def test_output_of_a_node_that_is_not_terminal_is_refused(checkpointer: Any) -> None:
    definition = fan(node("a", ["end_0"]))
    ran = closed(definition, a=lambda _s: Command(output=1))
    with pytest.raises(RoutingError, match="is not terminal"):
        ran.with_checkpointer(checkpointer).run_with_thread("t", {})


def test_waits_of_a_barrier_form_one_batch(checkpointer: Any) -> None:
    """Scenario 65: both are open at once, and both successors wait for theirs."""
    definition = fan(node("a", wait_to=["end_0"]), node("b", wait_to=["end_1"]), ends=2)
    ran = closed(definition, a=lambda _s: Interrupt("a?"), b=lambda _s: Interrupt("b?"))
    ran = ran.with_checkpointer(checkpointer)
    paused = ran.run_with_thread("t", {})
    assert [wait.payload for wait in paused.interrupts] == ["a?", "b?"]
    answers = {wait.id: 1 for wait in paused.interrupts}
    ended = ran.resume("t", Command(answers=answers))
    assert ended.state.log == ["end_0:x", "end_1:x"]


@pytest.mark.parametrize("count", [MAXIMUM_QUESTIONS, MAXIMUM_QUESTIONS + 1])
def test_questions_of_a_node_are_bounded(count: int, checkpointer: Any) -> None:
    """Scenario 65: 64 at once, not 65."""
    asked = [Interrupt(i, key=str(i)) for i in range(count)]
    ran = closed(fan(node("a", wait_to=["end_0"])), a=lambda _s: asked)
    ran = ran.with_checkpointer(checkpointer)
    if count > MAXIMUM_QUESTIONS:
        with pytest.raises(NodeFailedError, match="65 questions at once"):
            ran.run_with_thread("t", {})
    else:
        assert len(ran.run_with_thread("t", {}).interrupts) == count


def test_question_keys_of_a_batch_differ(checkpointer: Any) -> None:
    """Scenario 65: a repeated id."""
    asked = [Interrupt(1, key="same"), Interrupt(2, key="same")]
    ran = closed(fan(node("a", wait_to=["end_0"])), a=lambda _s: asked)
    with pytest.raises(NodeFailedError, match="a key of its own"):
        ran.with_checkpointer(checkpointer).run_with_thread("t", {})


def test_wait_beside_a_continue_retains_the_whole_union(time: Any) -> None:
    """Scenario 66: the run waits, then everything that is due runs together."""
    definition = fan(node("a", ["end_0"]), node("b", wait_to=["end_1"]), ends=2)
    hour = timedelta(hours=1)
    ran = closed(definition, b=lambda _s: Timer(hour)).with_checkpointer(time.store)
    admit(ran)
    assert str(drive(time.store).status) == "waiting"
    assert ran.get_state("t").next_nodes == ["end_0", "end_1"]
    assert ran.get_state("t").values.log == ["a:x"]
    time.pass_by(hour)
    assert str(drive(time.store).status) == "completed"
    assert ran.get_state("t").values.log == ["a:x", "end_0:x", "end_1:x"]


def test_reducer_is_not_called_without_updates(checkpointer: Any) -> None:
    """Scenario 67: the state stays as it is."""
    calls: list[Any] = []

    def counted(state: State, updates: Any) -> Any:
        calls.append(updates)
        return added(state, updates)

    definition = fan(node("a", ["end_0"]))
    ran = closed(definition, reducer=counted, a=lambda _s: None)
    ran = ran.with_checkpointer(checkpointer)
    assert ran.run_with_thread("t", {}).state.log == ["end_0:x"]
    assert calls == [[("end_0", {"add": "x"})]]


@pytest.mark.parametrize("broken", [ZeroDivisionError("no"), {"log": 7}, {"nolog": []}])
def test_broken_reducer_is_a_failure_boundary(broken: Any, checkpointer: Any) -> None:
    """Scenario 68: an exception, and a state that the model refuses."""

    def reduce(_state: State, _updates: Any) -> Any:
        if isinstance(broken, Exception):
            raise broken
        return broken

    ran = closed(fan(node("a", ["end_0"])), reducer=reduce)
    ran = ran.with_checkpointer(checkpointer)
    with pytest.raises(ReducerError) as failed:
        ran.run_with_thread("t", {})
    assert failed.value.node_id == "a"
    assert ran.get_state("t").next_nodes == ["a"]


def wide(parallelism: int) -> Json:
    """Two nodes whose successors together are four."""
    return fan(
        node("a", ["end_0", "end_1"]),
        node("b", ["end_2", "end_3"]),
        ends=4,
        parallelism=parallelism,
    )


def test_ready_set_above_the_ceiling_is_a_failure_at_its_boundary(
    checkpointer: Any,
) -> None:
    """Section 4.1, step 6: SuccessorParallelismExceeded; what came before stands."""
    ran = closed(wide(3)).with_checkpointer(checkpointer)
    with pytest.raises(SuccessorParallelismExceededError) as failed:
        ran.run_with_thread("t", {})
    assert failed.value.node_id == "b"
    assert "4 nodes would be due" in str(failed.value)
    assert ran.get_state("t").values.log == ["a:x"]
    assert ran.get_state("t").next_nodes == ["end_0", "end_1", "b"]


def test_ready_set_at_the_ceiling_is_admitted(checkpointer: Any) -> None:
    ran = closed(wide(4)).with_checkpointer(checkpointer)
    assert len(ran.run_with_thread("t", {}).state.log) == 6
