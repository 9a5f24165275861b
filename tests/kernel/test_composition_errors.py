"""Calls that do not fit their graph: scenarios 53 to 57 and the error vectors."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import composition as public
from stateknot.errors import GraphError
from stateknot.kernel.composition import GraphComposition, GraphSubgraphCall
from stateknot.kernel.composition_lowering import Lowering
from stateknot.kernel.definition import GraphDefinition
from tests.kernel.composition_samples import (
    body,
    caller,
    compiled,
    composed,
    loop,
    template,
)
from tests.kernel.graph_samples import (
    Json,
    end,
    graph,
    identity,
    load_vectors,
    node,
    refused,
    schema,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _caller_with(**review: Any) -> Json:
    data = caller()
    data["nodes"][0].update(review)
    return data


def _extra_route() -> Json:
    data = caller()
    data["nodes"][0]["routes"].append({"route_id": "extra", "successors": ["finish"]})
    return data


def _two_wide_entries() -> GraphComposition:
    wide = graph(
        [node("a", ["done"]), node("b", ["done"]), end("done")],
        ["a", "b"],
        parallelism=2,
    )
    parent = graph(
        [
            node("left", routes={"left": ["end"]}),
            node("right", routes={"right": ["end"]}),
            end("end"),
        ],
        ["left", "right"],
        parallelism=2,
    )
    calls = [
        GraphSubgraphCall.once(site, template(wide)).with_return_routes({"done": site})
        for site in ("left", "right")
    ]
    return composed(*calls, parent=parent)


def _cycle() -> Json:
    work = node("work", routes={"retry": ["work"], "accept": ["done"]})
    return graph([work, end("done")], ["work"])


MISTAKES: dict[str, Callable[[], object]] = {
    "template_cycle": lambda: template(_cycle()),
    "template_entry_port": lambda: template(graph([end("a")], ["a"])),
    "template_step_limit": lambda: template(body(supersteps=1)),
    "loop_zero": lambda: loop(0),
    "loop_unknown_port": lambda: GraphSubgraphCall.bounded_loop(
        "review", template(), "typo", 3
    ),
    "loop_limit_before_port": lambda: GraphSubgraphCall.bounded_loop(
        "review", template(), "typo", 0
    ),
    "call_duplicate": lambda: composed(loop(2), loop(2)),
    "call_unknown": lambda: composed(GraphSubgraphCall.once("missing", template())),
    "call_extra_route": lambda: composed(loop(2), parent=_extra_route()),
    "call_site_also_continues": lambda: composed(
        loop(2), parent=_caller_with(continue_to=["finish"])
    ),
    "bind_missing_port": lambda: loop(2).with_return_routes({"again": "again"}),
    "bind_duplicate_route": lambda: loop(2).with_return_routes(
        {"again": "done", "done": "done"}
    ),
    "bind_duplicate_port": lambda: loop(2).with_return_routes(
        [("again", "again"), ("again", "done")]
    ),
    **{
        f"contract_{role}_schema": lambda role=role: composed(  # type: ignore[misc]
            loop(2, template(body(**{f"{role}_schema": schema("other")})))
        )
        for role in ("input", "update", "output")
    },
    "parallelism_template_lower": lambda: composed(
        loop(2, template(body(parallelism=1)))
    ),
    "expanded_entry_parallelism": _two_wide_entries,
}
PREFIXES = ("template_", "loop_", "call_", "bind_", "contract_", "parallelism_", "exp")
RECORDED = {
    entry["name"]: entry["expected_error"]
    for entry in load_vectors("composition_errors.json")
    if entry["name"].startswith(PREFIXES)
}


def test_every_composition_error_vector_is_tested() -> None:
    assert MISTAKES.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", MISTAKES)
def test_composition_error_vector_reports_recorded_kind(name: str) -> None:
    """Scenarios 28 to 35, 53 to 55, 57: what the reference reports first."""
    with refused(RECORDED[name]):
        MISTAKES[name]()


@pytest.mark.parametrize(
    "review",
    [
        {"routes": [{"route_id": "again", "successors": ["exhausted"]}]},
        {"wait_to": ["finish"]},
        {"terminal": True},
        {
            "routes": [
                {"route_id": "again", "successors": ["exhausted"]},
                {"route_id": "other", "successors": ["finish"]},
            ]
        },
    ],
)
def test_call_site_that_does_not_fit_is_refused(review: Json) -> None:
    """Scenario 53: incomplete routes, mixed controls, a route of another name."""
    parent = GraphDefinition.compile(**_caller_with(**review), require_reachable=False)
    with refused("ReturnRoutesMismatch"):
        GraphComposition.compile(parent, [loop(2)])


@pytest.mark.parametrize(
    "change",
    [
        {"state_schema": schema("other")},
        {
            "reducer": {
                "identity": identity("other"),
                "definition_digest": schema("other")["digest"],
            }
        },
    ],
)
def test_template_of_another_contract_is_refused(change: Json) -> None:
    """Scenario 54: state schema and reducer, beside the three of the vectors."""
    with refused("SharedStateContractMismatch"):
        composed(loop(2, template(body(**change))))


def test_512_iterations_are_refused_before_allocation() -> None:
    """Scenario 56: by arithmetic, so it costs no more than the check itself."""
    parent, call = compiled(caller()), loop(512)
    tracemalloc.start()
    with refused("ExpansionTooLarge"):
        GraphComposition.compile(parent, [call])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_expansion_past_the_definition_size_is_refused_early() -> None:
    """Section 1.4: many wide sets are refused while they are made, not when encoded."""
    targets = [f"t{number:04}-{'x' * 100}" for number in range(500)]
    narrow = [node(f"n{number:03}", ["done"]) for number in range(400)]
    starts = [one["node_id"] for one in narrow]
    wide_body = graph([*narrow, end("done")], starts, parallelism=1024)
    parent = graph(
        [node("call", routes={"done": targets}), *map(end, targets)],
        ["call"],
        parallelism=1024,
    )
    call = GraphSubgraphCall.once("call", template(wide_body))
    lowering = Lowering(compiled(parent), [call])
    with refused("DefinitionTooLarge"):
        lowering.nodes()


def test_set_that_expands_past_1024_nodes_is_refused() -> None:
    """Section 2.3, F: three call entries and five nodes are 1,025."""
    starts = [f"n{number:03}" for number in range(340)]
    wide = graph(
        [*(node(one, ["done"]) for one in starts), end("done")],
        starts,
        parallelism=1024,
    )
    sites = ["a", "b", "c"]
    ordinary = [f"o{number}" for number in range(5)]
    parent = graph(
        [
            *(node(site, routes={site: ["end"]}) for site in sites),
            *(node(one, ["end"]) for one in ordinary),
            end("end"),
        ],
        [*sites, *ordinary],
        parallelism=1024,
    )
    calls = [
        GraphSubgraphCall.once(site, template(wide)).with_return_routes({"done": site})
        for site in sites
    ]
    with refused("ExpansionTooLarge"):
        composed(*calls, parent=parent)


def test_extension_that_names_a_call_site_is_refused() -> None:
    definition = GraphDefinition.compile(
        **caller(), extensions={"waiting_edges": {"finish": ["review"]}}
    )
    with refused("ExtensionsUnsupported"):
        GraphComposition.compile(definition, [loop(2)])


def test_all_faults_of_all_calls_are_told_at_once() -> None:
    calls = [
        GraphSubgraphCall.once("missing", template()),
        loop(2, template(body(parallelism=1))),
        loop(2),
    ]
    with pytest.raises(GraphError) as raised:
        composed(*calls)
    assert [one.kind for one in raised.value.issues] == [
        "UnknownCallSite",
        "TemplateParallelismLimit",
        "DuplicateCallSite",
    ]


def test_endless_calls_are_refused_without_reading_them() -> None:
    def endless() -> Any:
        while True:
            yield loop(1)

    with refused("DuplicateCallSite"):
        GraphComposition.compile(compiled(caller()), endless())


def test_public_module_has_the_names_of_the_contract() -> None:
    """design.md section 3."""
    contract = {
        "GraphDefinition",
        "GraphNode",
        "GraphRoute",
        "GraphLimits",
        "SharedStateSubgraph",
        "GraphSubgraphCall",
        "GraphComposition",
    }
    assert contract <= set(public.__all__)
    assert all(isinstance(getattr(public, name), type) for name in contract)
