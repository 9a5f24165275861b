"""A builder as template and as caller: the same bytes as the closed form, and runs."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from stateknot import START, Command, GraphBuilder, Interrupt, NodeContext, add, append
from stateknot.composition import (
    GraphComposition,
    GraphDefinition,
    GraphSubgraphCall,
    SharedStateSubgraph,
)

pytestmark = pytest.mark.usefixtures("empty_registry")
SHARED = (
    *("input_schema", "state_schema", "update_schema", "output_schema"),
    *("reducer", "limits"),
)


class State(BaseModel):
    n: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []


class OtherReducer(BaseModel):
    n: int = 0
    log: Annotated[list[str], append] = []


def place(_state: State, ctx: NodeContext) -> Any:
    """Log the iteration that the node stands in."""
    return {"n": 1, "log": [f"{ctx.source.call_site}-{ctx.source.iteration}"]}


def skip(_state: Any) -> None: ...


def enough(state: Any) -> str:
    return "accept" if state.n >= 3 else "retry"


def body(handler: Any = place, state: Any = State) -> Any:
    template = GraphBuilder("tests.body", state=state).add_node("work", handler)
    template.add_edge(START, "work")
    template.add_conditional_edges("work", enough, {"retry": "again", "accept": "done"})
    return template.add_port("again").add_port("done")


def parent(
    template: Any,
    bound: int = 2,
    graph_id: str = "tests.parent",
    state: Any = State,
    **returns: str,
) -> Any:
    builder = GraphBuilder(graph_id, state=state).add_edge(START, "review")
    builder.add_node("exhausted", skip).add_node("finish", skip)
    return builder.add_subgraph_call(
        "review",
        template,
        repeat="again",
        maximum_iterations=bound,
        returns=returns or {"again": "exhausted", "done": "finish"},
    )


def nested(bound: int = 2) -> Any:
    """A caller whose body has a call itself, both of them bounded loops."""
    inner = GraphBuilder("tests.middle", state=State).add_edge(START, "inner")
    inner.add_subgraph_call(
        "inner",
        body(),
        repeat="again",
        maximum_iterations=2,
        returns={"again": "again", "done": "done"},
    )
    return parent(inner.add_port("again").add_port("done"), bound)


def closed(name: str, entry: str, nodes: list[Any], like: Any) -> GraphDefinition:
    """A definition written by hand, of one contract with what the builder made."""
    given = like.definition.to_dict()
    identity = given["identity"]
    capability = {**identity["capability"], "name": name}
    return GraphDefinition.from_dict(
        {
            **{key: given[key] for key in SHARED},
            "identity": {**identity, "capability": capability},
            "entry_nodes": [entry],
            "nodes": nodes,
        }
    )


def end(name: str) -> dict[str, Any]:
    return {"node_id": name, "routes": [], "terminal": True}


def choice(name: str, **routes: str) -> dict[str, Any]:
    listed = [{"route_id": r, "successors": [to]} for r, to in routes.items()]
    return {"node_id": name, "routes": listed, "terminal": False}


def test_builder_and_closed_form_of_the_same_parts_have_one_digest() -> None:
    graph = parent(body()).compile()
    template = closed(
        "tests.body",
        "work",
        [choice("work", retry="again", accept="done"), end("again"), end("done")],
        graph,
    )
    caller = closed(
        "tests.parent",
        "review",
        [
            choice("review", again="exhausted", done="finish"),
            end("exhausted"),
            end("finish"),
        ],
        graph,
    )
    call = GraphSubgraphCall.bounded_loop(
        "review", SharedStateSubgraph(template), "again", 2
    )
    composition = GraphComposition.compile(caller, [call])
    assert composition.graph.digest == graph.digest
    assert composition.source_map() == graph.composition.source_map()


def test_changed_function_is_no_new_revision() -> None:
    assert parent(body()).compile().digest == parent(body(skip)).compile().digest


@pytest.mark.parametrize(
    "changed",
    [
        parent(body(), bound=3),
        parent(body(), again="finish", done="exhausted"),
        parent(body(state=OtherReducer), state=OtherReducer),
        parent(body().add_node("more", skip).add_edge("more", "done")),
    ],
    ids=["bound", "binding", "reducer", "structure"],
)
def test_changed_part_is_a_new_revision(changed: Any) -> None:
    assert changed.compile().digest != parent(body()).compile().digest


def test_composed_graph_runs_as_a_template(checkpointer: Any) -> None:
    """Scenarios 45, 46: a loop of two in a loop of two, by the labels of its author."""
    graph = nested().compile().with_checkpointer(checkpointer)
    assert len(graph.composition.node_sources) == 4
    ended = graph.run_with_thread("t", {})
    assert ended.visited[-1] == "finish"
    assert ended.state.log == ["review-0", "review-0", "review-1"]


def test_composed_graph_as_a_template_is_exhausted_once(checkpointer: Any) -> None:
    """Scenarios 46, 72: the inner exhaustion is the outer's repetition."""
    graph = nested(1).compile().with_checkpointer(checkpointer)
    assert graph.run_with_thread("t", {}).visited[-1] == "exhausted"


def test_question_in_a_loop_is_asked_once_an_iteration(checkpointer: Any) -> None:
    """Scenario 48: the run pauses in each, and its state is seen at each barrier."""

    def ask(_state: State, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return Interrupt(ctx.source.iteration)
        return {"n": ctx.resume, "log": [f"{ctx.source.iteration}={ctx.resume}"]}

    graph = parent(body(ask), bound=3).compile().with_checkpointer(checkpointer)
    paused = graph.run_with_thread("t", {})
    seen = []
    for answer in (1, 1, 5):
        (question,) = paused.interrupts
        seen.append((question.payload, graph.get_state("t").values.n))
        paused = graph.resume("t", Command(resume=answer))
    assert seen == [(0, 0), (1, 1), (2, 2)]
    assert paused.visited[-1] == "finish"
    assert paused.state.log == ["0=1", "1=1", "2=5"]
