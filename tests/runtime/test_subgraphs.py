"""Graphs as nodes: what goes in, what comes out, where the child's records stand."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    Send,
    adapter_subgraph,
    append,
    shared_subgraph,
    union,
)
from stateknot.errors import RunError
from tests.runtime.families import (
    Story,
    child_states,
    line,
    parent_of,
    stage,
    told_story,
)
from tests.runtime.graphs import Tally, add_fan, go, new_builder, note


def ten() -> Any:
    """A child of one node that adds ten."""
    return line("tests.ten", {"c": note("c", 10)})


def test_shared_child_works_on_the_state_of_its_parent(checkpointer: Any) -> None:
    """Scenario 135."""
    graph = parent_of(ten(), checkpointer, after=())
    assert graph.run_with_thread("t", {}).state == Tally(total=11, log=["before", "c"])


def test_adapter_child_has_a_state_of_its_own(checkpointer: Any) -> None:
    """Scenario 136: `from_child` sees the parent's state as well."""
    child = line("tests.story", {"s": stage("s")}, Story)
    graph = parent_of(told_story(child), checkpointer)
    done = graph.run_with_thread("t", {"mark": "tale"})
    assert done.state.log == ["before", "tale:1", "s", "after"]


def test_parent_visits_only_its_own_nodes(checkpointer: Any) -> None:
    """Scenario 137: a shared and an adapter child in one parent."""
    story = line("tests.story", {"s": stage("s")}, Story)
    graph = line("tests.parent", {"a": shared_subgraph(ten()), "b": told_story(story)})
    done = graph.with_checkpointer(checkpointer).run_with_thread("t", {"mark": "m"})
    assert (done.visited, done.steps) == (["a", "b"], 2)
    assert done.state.log == ["c", "m:10", "s"]


def test_records_of_a_child_stand_under_its_parents_boundary(
    checkpointer: Any,
) -> None:
    """SG-09, scenarios 138 and 144: the child's steps are found from the parent."""
    child = line("tests.child", {n: note(n, 1) for n in ("c1", "c2", "c3")})
    graph = parent_of(child, checkpointer)
    done = graph.run_with_thread("t", {})
    steps = child_states(child, graph, "t")
    assert [s.metadata["source"] for s in steps] == ["input", "loop", "loop", "loop"]
    assert [s.values.total for s in steps] == [1, 2, 3, 4]
    (told,) = graph.get_state_history("t")[1].metadata["child_runs"]
    assert told["namespace"] == ["2:0:child"]
    assert (told["node"], told["graph_id"]) == ("child", "tests.child")
    assert told["run_id"] == done.child_runs[0].run_id == steps[0].metadata["run_id"]
    assert [s.metadata["step"] for s in graph.get_state_history("t")] == [3, 2, 1, 0]


def test_child_uses_the_store_of_its_parent(checkpointer: Any) -> None:
    """Replaces scenario 138 (decision 10): a checkpointer of its own is not used."""
    from stateknot import MemoryCheckpointer

    own = MemoryCheckpointer()
    child = ten().with_checkpointer(own)
    graph = parent_of(child, checkpointer)
    graph.run_with_thread("t", {})
    assert len(child_states(child, graph, "t")) == 2
    assert own.find_thread_run("t", ("2:0:child",)) is None


def test_child_under_two_hosts_has_two_places(checkpointer: Any) -> None:
    """Scenario 139, SG-05: equal node names in them do not meet."""
    child = ten()
    builder = add_fan(
        new_builder(), {"left": shared_subgraph(child), "right": shared_subgraph(child)}
    )
    graph = builder.compile().with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    assert done.state.total == 20
    (left, right) = done.child_runs
    assert (left.node, right.node) == ("left", "right")
    assert left.namespace != right.namespace
    assert left.run_id != right.run_id
    assert len(child_states(child, graph, "t", 0)) == 2
    assert len(child_states(child, graph, "t", 1)) == 2


def nest(levels: int, innermost: Any) -> Any:
    """`levels` graphs around `innermost`, each hosting the next at a node `inner`."""
    graph = innermost
    for level in range(levels, 0, -1):
        name = f"n{level}"
        nodes = {name: note(name), "inner": shared_subgraph(graph)}
        graph = line(f"tests.level{level}", nodes)
    return graph


def test_namespace_accumulates_over_the_levels(checkpointer: Any) -> None:
    """Replaces scenario 140 (decision 10, D3): [middle, inner], not [inner] alone."""
    seen: list[Any] = []

    def leaf(_state: Tally, ctx: Any) -> dict[str, Any]:
        seen.append(ctx)
        return {"log": ["leaf"]}

    graph = nest(3, line("tests.leaf", {"leaf": leaf})).with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    assert done.state.log == ["n1", "n2", "n3", "leaf"]
    (ctx,) = seen
    assert ctx.namespace == ("2:0:inner",) * 3
    assert [f.graph_id for f in ctx.recursion_frames] == [
        "tests.level1",
        "tests.level2",
        "tests.level3",
    ]
    assert [f.depth for f in ctx.recursion_frames] == [0, 1, 2]
    assert ctx.root_run_id == done.run_id
    assert ctx.recursion_frames[1].parent_run_id == done.run_id


def test_list_of_a_child_is_not_added_again(checkpointer: Any) -> None:
    """SG-03: two levels of nesting, one item from each."""
    graph = nest(2, line("tests.leaf", {"leaf": note("c")}))
    done = graph.with_checkpointer(checkpointer).run_with_thread("t", {"log": ["p"]})
    assert done.state.log == ["p", "n1", "n2", "c"]


class Wide(BaseModel):
    """Fields of several kinds, of which a child writes only some."""

    written: str = "old"
    kept: str = "parent"
    items: Annotated[list[str], append] = []
    names: Annotated[list[str], union] = []


def test_field_that_the_child_did_not_write_is_no_update(checkpointer: Any) -> None:
    """Decision 10: a sibling's write to it in the same superstep stands."""
    child = line(
        "tests.child",
        {"c": lambda _: {"written": "child", "items": ["c"], "names": ["b"]}},
        Wide,
    )
    builder = new_builder(state=Wide)
    # `x_child` folds last: with the reference's whole state it would undo `a_sibling`.
    add_fan(
        builder,
        {
            "a_sibling": lambda _: {"kept": "sibling", "items": ["s"]},
            "x_child": shared_subgraph(child),
        },
    )
    graph = builder.compile().with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {"names": ["a"], "items": ["p"]})
    assert done.state == Wide(
        written="child", kept="sibling", items=["p", "s", "c"], names=["a", "b"]
    )


def fan_of_children(child: Any, checkpointer: Any, *, is_parallel: bool) -> Any:
    """Sends 1, 2, 3 of one node that runs `child` on its argument."""
    builder = add_fan(new_builder(), {"go": go(*(Send("c", n) for n in (1, 2, 3)))})

    def call(_state: Tally, ctx: Any) -> dict[str, Any]:
        state = child.run({"total": ctx.send_arg}).state
        return {"log": state.log, "total": state.total}

    builder.add_node("c", call)
    builder = builder.with_parallel() if is_parallel else builder
    return builder.compile().with_checkpointer(checkpointer)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_sends_of_one_node_have_children_of_their_own(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Replaces scenario 146's defect (D3): each Send has its child, in its place."""
    child = line("tests.ten", {"c": lambda s: {"log": [str(s.total)], "total": 10}})
    graph = fan_of_children(child, checkpointer, is_parallel=is_parallel)
    done = graph.run_with_thread("t", {})
    assert done.state == Tally(total=36, log=["1", "2", "3"])
    namespaces = {run.namespace for run in done.child_runs}
    assert namespaces == {(f"2:{place}:c#1",) for place in range(3)}


@pytest.mark.parametrize("is_parallel", [False, True])
def test_sends_of_one_subgraph_node_do_not_meet(
    checkpointer: Any, is_parallel: bool
) -> None:
    """Replaces scenario 146's defect (D3) for a node that is a graph."""
    builder = add_fan(new_builder(), {"go": go(*(Send("c", n) for n in (1, 2)))})
    builder.add_node("c", shared_subgraph(ten()))
    builder = builder.with_parallel() if is_parallel else builder
    graph = builder.compile().with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {"total": 1})
    assert (done.state.total, done.state.log) == (21, ["c", "c"])
    assert len({run.run_id for run in done.child_runs}) == 2


def test_run_tree_mirrors_the_child_runs(checkpointer: Any) -> None:
    """Scenario 143: two siblings in completion order, with the parent's root."""
    nodes = {"one": shared_subgraph(ten()), "two": shared_subgraph(ten())}
    graph = line("tests.parent", nodes).with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    tree = done.run_tree()
    assert (tree.is_root, tree.root_run_id) == (True, done.run_id)
    assert [child.node for child in tree.children] == ["one", "two"]
    assert {child.root_run_id for child in tree.children} == {done.run_id}
    assert len({done.run_id, *(child.run_id for child in tree.children)}) == 3
    record = checkpointer.find_run(tree.children[0].run_id)
    assert (record.parent_run_id, record.root_run_id) == (done.run_id, done.run_id)


def test_grandchild_hangs_below_its_own_parent(checkpointer: Any) -> None:
    """Decision 10 (D16): the root of all is the first run."""
    graph = nest(2, ten()).with_checkpointer(checkpointer)
    done = graph.run_with_thread("t", {})
    (child,) = checkpointer.list_children(done.run_id)
    (grandchild,) = checkpointer.list_children(child.id)
    assert [run.run_id for run in done.child_runs] == [child.id]
    assert (grandchild.root_run_id, grandchild.graph_id) == (done.run_id, "tests.ten")


def counting() -> Any:
    """A child that logs its total and counts."""
    return line("tests.count", {"c": lambda s: {"log": [f"{s.total}"], "total": 1}})


@pytest.mark.parametrize(("memory", "logged"), [("fresh", "0"), ("carry", "1")])
def test_memory_says_whether_a_child_remembers(
    checkpointer: Any, memory: str, logged: str
) -> None:
    """SG-08: called twice in one run, fresh counts 0, 0 and carry 0, 1."""
    child = adapter_subgraph(
        counting(), lambda _: {}, lambda _, s: {"log": [s.log[-1]]}, memory=memory
    )
    builder = add_fan(new_builder(), {"child": child}).add_conditional_edges(
        "child",
        lambda s: "again" if len(s.log) < 2 else "end",
        {"again": "child", "end": "__end__"},
    )
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["0", logged]


def test_unknown_memory_is_refused_when_the_graph_is_built() -> None:
    with pytest.raises(ValueError, match="fresh"):
        shared_subgraph(ten(), memory="forever")


def test_subgraph_node_outside_a_run_says_so() -> None:
    with pytest.raises(RunError, match="outside a run"):
        shared_subgraph(ten())(Tally(), None)  # type: ignore[arg-type]


def test_memory_run_needs_no_checkpointer() -> None:
    """A child in a graph without a checkpointer, and no thread."""
    done = parent_of(ten()).run({})
    assert (done.state.total, len(done.child_runs)) == (12, 1)


def test_second_run_on_a_thread_starts_its_child_fresh(checkpointer: Any) -> None:
    """Decision 11: the new lineage has calls of its own."""
    graph = parent_of(ten(), checkpointer)
    first = graph.run_with_thread("t", {}).child_runs[0]
    second = graph.run_with_thread("t", {})
    assert second.state.total == 12
    assert second.child_runs[0].run_id != first.run_id
    assert second.child_runs[0].namespace != first.namespace


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_child_is_as_durable_as_its_parent(checkpointer: Any, mode: str) -> None:
    """Decision 8: in every mode its last record is stored."""
    child = line("tests.child", {n: note(n, 1) for n in ("c1", "c2")})
    graph = parent_of(child, checkpointer).with_durability(mode)
    assert graph.run_with_thread("t", {}).state.total == 4
    steps = child_states(child, graph, "t")
    assert steps[-1].values.total == 3
    numbers = [s.metadata["step"] for s in steps]
    assert numbers == ([0, 2] if mode == "exit" else [0, 1, 2])


def test_child_may_choose_where_its_parent_goes(checkpointer: Any) -> None:
    """`from_child` may return a Command."""
    child = adapter_subgraph(
        ten(), lambda s: s, lambda _, s: Command(update={"total": s.total}, goto="b")
    )
    builder = new_builder().add_command_node("a", child, destinations=["b"])
    builder.add_node("b", note("b")).add_edge(START, "a")
    graph = builder.compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited == ["a", "b"]
