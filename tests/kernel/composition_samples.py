"""Templates, callers and calls for the composition tests."""

from __future__ import annotations

from typing import Any

from stateknot.kernel.composition import (
    GraphComposition,
    GraphSubgraphCall,
    SharedStateSubgraph,
)
from stateknot.kernel.definition import GraphDefinition
from tests.kernel.graph_samples import Json, end, graph, node


def body(**options: Any) -> Json:
    """work -> decide, which returns through `again` or `done`."""
    return graph(
        [
            node("work", ["decide"]),
            node("decide", routes={"retry": ["again"], "accept": ["done"]}),
            end("again"),
            end("done"),
        ],
        ["work"],
        **{"name": "body", **options},
    )


def caller(**options: Any) -> Json:
    """A graph whose one call-site, `review`, has a route for each port of `body`."""
    return graph(
        [
            node("review", routes={"again": ["exhausted"], "done": ["finish"]}),
            end("exhausted"),
            end("finish"),
        ],
        ["review"],
        **{"name": "parent", **options},
    )


def compiled(data: Json) -> GraphDefinition:
    return GraphDefinition.compile(**data)


def template(data: Json | None = None) -> SharedStateSubgraph:
    return SharedStateSubgraph(compiled(body() if data is None else data))


def loop(count: int, called: SharedStateSubgraph | None = None) -> GraphSubgraphCall:
    chosen = template() if called is None else called
    return GraphSubgraphCall.bounded_loop("review", chosen, "again", count)


def composed(*calls: GraphSubgraphCall, parent: Json | None = None) -> GraphComposition:
    return GraphComposition.compile(compiled(parent or caller()), calls)


def call_of(data: Json, templates: dict[str, SharedStateSubgraph]) -> GraphSubgraphCall:
    """The call that a vector describes."""
    called = templates[data["template"]]
    call = GraphSubgraphCall.once(data["call_site"], called)
    if data["kind"] == "bounded_loop":
        call = GraphSubgraphCall.bounded_loop(
            data["call_site"], called, data["repeat_port"], data["maximum_iterations"]
        )
    routes = data["return_routes"]
    return call.with_return_routes(routes) if routes else call


def templates_of(vector: Json) -> dict[str, SharedStateSubgraph]:
    """The templates of a vector, by the names that its calls use."""
    return {
        name: SharedStateSubgraph(GraphDefinition.from_dict(data))
        for name, data in vector["inputs"]["templates"].items()
    }


def compose_vector(vector: Json) -> GraphComposition:
    """Compile what a vector describes."""
    templates = templates_of(vector)
    calls = [call_of(data, templates) for data in vector["inputs"]["calls"]]
    parent = GraphDefinition.from_dict(vector["inputs"]["parent"])
    return GraphComposition.compile(parent, calls)


def generated(
    composition: GraphComposition,
    node_id: str,
    iteration: int = 0,
    call_site: str = "review",
) -> str:
    """The generated id of a template's node."""
    wanted = (node_id, iteration, call_site)
    (found,) = (
        key
        for key, source in composition.node_sources.items()
        if (source.node_id, source.iteration, source.call_site) == wanted
    )
    return found


def follow(composition: GraphComposition, node_id: str, label: str) -> tuple[str, ...]:
    """Where a node leads by the route its template calls `label`."""
    source = composition.node_source(node_id)
    wanted = label if source is None else source.route_id(label)
    routes = composition.graph.node(node_id).routes
    return next(one.successors for one in routes if one.route_id == wanted)
