"""Which events a run tells, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot import START, Command, NodeContext, shared_subgraph
from stateknot.errors import NodeFailedError
from stateknot.runtime.events import CollectingSink
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import (
    Asker,
    Flaky,
    Tally,
    add_fan,
    add_line,
    new_builder,
    note,
)


def kinds(sink: Any, *wanted: str) -> list[str]:
    return [kind for kind in sink.kinds if not wanted or kind in wanted]


def named(sink: Any) -> list[str]:
    """Kind and node, where an event has one."""
    return [f"{e.kind} {e.node}" if e.node else e.kind for e in sink.events]


def test_run_is_told_from_its_start_to_its_end(sink: Any) -> None:
    """Scenario 160: every kind of the life of a run, in order."""
    graph = add_line(new_builder(), "a").compile().with_event_sink(sink)
    graph.run({})
    assert sink.kinds == [
        "run.started",
        "recursion.depth_changed",
        "step.started",
        "task.scheduled",
        "node.started",
        "state.updated",
        "node.completed",
        "checkpoint.saved",
        "step.completed",
        "run.completed",
    ]


def test_sequential_fan_out_is_told_in_active_order(sink: Any) -> None:
    """Scenario 161, with the outcomes told at the barrier in both modes: only there is
    it known what is folded (decision 2)."""
    nodes = {"a": note("a"), "b": note("b")}
    add_fan(new_builder(), nodes).compile().with_event_sink(sink).run({})
    assert named(sink)[2:11] == [
        "step.started",
        "task.scheduled a",
        "node.started a",
        "task.scheduled b",
        "node.started b",
        "state.updated a",
        "node.completed a",
        "state.updated b",
        "node.completed b",
    ]


def test_concurrent_fan_out_tells_its_forks_first(sink: Any) -> None:
    """Scenario 161: the exact order, whatever finishes first."""
    nodes = {"a": note("a"), "b": note("b")}
    builder = add_fan(new_builder(), nodes).with_parallel()
    builder.add_node("c", note("c")).add_edge("a", "c")
    builder.compile().with_event_sink(sink).run({})
    assert named(sink)[2:16] == [
        "step.started",
        "task.scheduled a",
        "node.started a",
        "context.forked a",
        "task.scheduled b",
        "node.started b",
        "context.forked b",
        "state.updated a",
        "node.completed a",
        "state.updated b",
        "node.completed b",
        "route.selected a",
        "checkpoint.saved",
        "step.completed",
    ]


def test_pause_ends_with_its_question_and_its_boundary(
    checkpointer: Any, sink: Any
) -> None:
    """Scenario 162: no step and no run is completed."""
    builder = add_fan(new_builder(), {"a": note("a"), "ask": Asker()})
    builder.add_node("b", note("b")).add_edge("a", "b")
    graph = builder.with_parallel().compile().with_checkpointer(checkpointer)
    graph.with_event_sink(sink).run_with_thread("t", {})
    assert named(sink)[-3:] == [
        "interrupt.emitted ask",
        "route.selected a",
        "checkpoint.saved",
    ]
    assert kinds(sink, "step.completed", "run.completed", "run.failed") == []


def test_routes_are_told_but_not_the_end(sink: Any) -> None:
    """Scenario 163: static and conditional ones."""
    builder = add_line(new_builder(), "a", "b").add_node("c", note("c"))
    builder.add_conditional_edges("b", lambda _: "on", {"on": "c"})
    builder.add_edge("c", "__end__").compile().with_event_sink(sink).run({})
    routes = [(e.node, e.data["to"]) for e in sink.events if e.kind == "route.selected"]
    assert routes == [("a", "b"), ("b", "c")]


def test_each_boundary_is_told_saved(checkpointer: Any, sink: Any) -> None:
    """Scenario 164: three steps, three boundaries, and the input record beside them."""
    graph = add_line(new_builder(), "a", "b", "c").compile()
    graph = graph.with_checkpointer(checkpointer).with_event_sink(sink)
    graph.run_with_thread("t", {})
    saved = [e.data["checkpoint"] for e in sink.events if e.kind == "checkpoint.saved"]
    history = [s.config["checkpoint_id"] for s in graph.get_state_history("t")]
    assert saved == list(reversed(history))[1:]
    assert len(saved) == 3


def test_depth_is_told_once(sink: Any) -> None:
    """Scenario 165: a run itself is at depth 1."""
    add_line(new_builder(), "a").compile().with_event_sink(sink).run({})
    depths = [e.data for e in sink.events if e.kind == "recursion.depth_changed"]
    assert depths == [{"depth": 1}]


def test_child_is_told_by_its_parent(checkpointer: Any, sink: Any) -> None:
    """`subgraph.started` and `.completed` are told, with the child's place."""
    graph = parent_of(line("tests.c", {"c": note("c")}), checkpointer)
    done = graph.with_event_sink(sink).run_with_thread("t", {})
    told = [e for e in sink.events if e.kind.startswith("subgraph.")]
    assert [e.kind for e in told] == ["subgraph.started", "subgraph.completed"]
    assert {(e.node, e.step) for e in told} == {("child", 2)}
    assert told[0].data == {
        "graph": "tests.c",
        "run_id": done.child_runs[0].run_id,
        "namespace": ["2:0:child"],
    }


def test_child_that_pauses_is_not_told_completed(checkpointer: Any, sink: Any) -> None:
    graph = parent_of(line("tests.c", {"c": Asker()}), checkpointer)
    graph = graph.with_event_sink(sink)
    graph.run_with_thread("t", {})
    assert kinds(sink, "subgraph.started", "subgraph.completed") == ["subgraph.started"]
    graph.resume("t", Command(resume=1))
    assert kinds(sink, "subgraph.completed") == ["subgraph.completed"]


def test_events_of_a_child_go_to_its_own_sinks(checkpointer: Any, sink: Any) -> None:
    """Section 6: sinks are not handed on."""
    own = CollectingSink()
    child = line("tests.c", {"c": note("c")}).with_event_sink(own)
    graph = line("tests.parent", {"p": shared_subgraph(child)})
    graph = graph.with_checkpointer(checkpointer).with_event_sink(sink)
    graph.run_with_thread("t", {})
    assert "node.started c" in named(own)
    assert "node.started c" not in named(sink)


def test_node_tells_events_of_its_own(checkpointer: Any, sink: Any) -> None:
    """`custom` events reach sinks and the store's journal."""

    def talk(_state: Tally, ctx: NodeContext) -> None:
        ctx.emit("progress", {"done": 3})

    graph = add_fan(new_builder(), {"talk": talk}).compile()
    graph = graph.with_checkpointer(checkpointer).with_event_sink(sink)
    run_id = graph.run_with_thread("t", {}).run_id
    (told,) = [e for e in sink.events if e.kind == "custom"]
    assert (told.node, told.step) == ("talk", 1)
    assert told.data == {"name": "progress", "data": {"done": 3}}
    journalled = [e for r in checkpointer.list_journal(run_id) for e in r.events]
    assert told in journalled


def test_failure_is_told_with_its_node(checkpointer: Any, sink: Any) -> None:
    graph = add_fan(new_builder(), {"a": Flaky("a")}).compile()
    graph = graph.with_checkpointer(checkpointer).with_event_sink(sink)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert named(sink)[-3:] == ["node.failed a", "checkpoint.saved", "run.failed"]


def test_run_that_is_refused_tells_nothing(sink: Any) -> None:
    """Section 8.1: what is wrong before the prologue is no event."""
    from stateknot.errors import ValidationError

    graph = add_line(new_builder(), "a").compile().with_event_sink(sink)
    with pytest.raises(ValidationError):
        graph.run_with_inputs({}, [])
    assert sink.kinds == []


def test_active_list_repeats_a_node_per_activation(sink: Any) -> None:
    """Section 8.1: two Sends of one node are two."""
    from stateknot import Send
    from tests.runtime.graphs import go, note_arg

    builder = add_fan(new_builder(), {"go": go(Send("w", 1), Send("w", 2))})
    builder.add_node("w", note_arg).compile().with_event_sink(sink).run({})
    active = [e.data["active"] for e in sink.events if e.kind == "step.started"]
    assert active == [["go"], ["w", "w"]]


def test_sink_that_fails_is_cut_off(checkpointer: Any, sink: Any) -> None:
    """A sink never fails a run, and the others go on hearing it."""
    heard: list[str] = []

    def broken(event: Any) -> None:
        heard.append(event.kind)
        raise RuntimeError("sink")

    graph = new_builder().add_node("a", note("a")).add_edge(START, "a").compile()
    graph = graph.with_checkpointer(checkpointer)
    graph.with_event_sink(broken).with_event_sink(sink).run_with_thread("t", {})
    assert heard == ["run.started"]
    assert sink.kinds[-1] == "run.completed"
