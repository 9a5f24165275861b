"""The definition of a builder's graph: what names a revision, and what does not."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from stateknot.errors import GraphError, ValidationError
from stateknot.kernel.blueprint import Blueprint
from stateknot.kernel.blueprint_definition import Owner, define
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.definition import GraphDefinition
from stateknot.kernel.reducers import append, union
from stateknot.kernel.schema_document import schema_reference
from stateknot.kernel.vocabulary import END
from tests.kernel.state_samples import Tally

OWNER = Owner(issuer="https://example.com", subject="tests")


def work(state: Any) -> None:
    """The handler of every node but one."""


def pick(state: Any) -> str:
    return "yes"


def sum_up(state: Any, updates: Any) -> Any:
    return state


class Order(BaseModel):
    """An order."""

    lines: Annotated[list[str], append] = []
    note: str = ""


STEPS: list[Any] = [
    lambda b: b.set_entry("a"),
    lambda b: b.set_entry("b"),
    lambda b: b.add_edge("a", ["c", "d"]),
    lambda b: b.add_edge("b", "d"),
    lambda b: b.add_waiting_edge(["c", "d"], "join"),
    lambda b: b.add_conditional_edges("join", pick, {"yes": "last", "no": END}),
    lambda b: b.add_barrier_relief("a", "c", "join"),
    lambda b: b.add_command_node("last", work, destinations=["a", "b"]),
    *(lambda b, n=n: b.add_node(n, work) for n in ("a", "b", "c", "d", "join")),
]


def build(steps: list[Any], **options: Any) -> Blueprint:
    options.setdefault("state", Order)
    builder = BlueprintBuilder("shop.order", **options)
    for step in steps:
        step(builder)
    return builder.blueprint()


def digest(*more: Any, **options: Any) -> str:
    return define(build([*STEPS, *more], **options), OWNER).digest


@given(st.permutations(STEPS))
def test_order_of_insertion_does_not_name_a_revision(steps: list[Any]) -> None:
    assert define(build(steps), OWNER).digest == digest()


def test_definition_round_trips_with_its_extensions() -> None:
    definition = define(build(STEPS), OWNER)
    again = GraphDefinition.from_dict(definition.to_dict())
    assert again.canonical_bytes() == definition.canonical_bytes()
    assert again.digest == definition.digest


def closed() -> Blueprint:
    """Entry set, continue, routes and terminal: all in the closed vocabulary."""
    return build(
        [
            *(lambda b, n=n: b.add_node(n, work) for n in ("d", "c", "b", "a")),
            lambda b: b.add_edge("a", ["c", "b"]).set_entry("a"),
            lambda b: b.add_edge("b", "d").add_edge("d", END),
            lambda b: b.add_conditional_edges("c", pick, {"yes": "d", "no": "b"}),
        ]
    )


def reference(model: type[BaseModel] = Order) -> Any:
    return schema_reference(
        model, id=f"https://example.com/schemas/{model.__name__}", version="1.0.0"
    )


def test_closed_graph_has_the_bytes_of_the_closed_form() -> None:
    """Design, section 4: what needs no extras shows none."""
    defined = define(closed(), OWNER)
    reducer = defined.to_dict()["reducer"]
    by_hand = GraphDefinition.compile(
        identity={
            "owner": {"issuer": "https://example.com", "subject": "tests"},
            "capability": {"name": "shop.order", "version": "1.0.0"},
        },
        input_schema=reference(),
        state_schema=reference(),
        update_schema=reference(),
        output_schema=reference(),
        reducer=reducer,
        entry_nodes=["a"],
        nodes=[
            {"node_id": "a", "continue_to": ["b", "c"]},
            {"node_id": "b", "continue_to": ["d"]},
            {
                "node_id": "c",
                "routes": [
                    {"route_id": "yes", "successors": ["d"]},
                    {"route_id": "no", "successors": ["b"]},
                ],
            },
            {"node_id": "d", "terminal": True},
        ],
        limits={"maximum_supersteps": "50", "maximum_parallelism": 1024},
    )
    assert defined.canonical_bytes() == by_hand.canonical_bytes()


def other_pick(state: Any) -> str:
    return "no"


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.set_defaults(parallel=True, max_concurrency=3, node_timeout=5),
        lambda b: setattr(b, "name", "Another name"),
        lambda b: b.with_parallel().with_node_timeout(3),
    ],
)
def test_how_a_graph_is_run_does_not_name_a_revision(change: Any) -> None:
    assert digest(change) == digest()


def test_bodies_do_not_name_a_revision() -> None:
    """Docstrings, handlers and routers may be mended without a new revision."""

    class Order(BaseModel):
        """Another docstring, another title, another order of writing."""

        note: str = Field(default="", description="told to people", title="Note")
        lines: Annotated[list[str], append] = Field(default=[], examples=[["a"]])

    steps = list(STEPS)
    steps[5] = lambda b: b.add_conditional_edges(
        "join", other_pick, {"no": END, "yes": "last"}
    )
    steps[8] = lambda b: b.add_node("a", lambda state: {"note": f"mended {state}"})
    assert define(build(steps, state=Order), OWNER).digest == digest()


class Wider(Order):
    more: int = 0


class Unique(BaseModel):
    lines: Annotated[list[str], union] = []
    note: str = ""


class Plain(BaseModel):
    lines: list[str] = []
    note: str = ""


class Change(BaseModel):
    note: str = ""


@pytest.mark.parametrize(
    "options",
    [
        {"state": Wider},
        {"state": Unique},
        {"state": Plain},
        {"update": Change},
        {"output": Change},
        {"reducer": sum_up},
        {"version": "1.0.1"},
    ],
)
def test_contract_names_a_revision(options: Any) -> None:
    """Schemas, reducers and the author's own label."""
    assert digest(**options) != digest()


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.with_recursion_limit(51),
        lambda b: b.add_edge("d", END),
        lambda b: b.set_entry("c"),
        lambda b: b.add_node("z", work),
        lambda b: b.add_waiting_edge(["b"], "join"),
        lambda b: b.add_barrier_relief("a", "d", "join"),
        lambda b: b.add_conditional_edges("d", pick, {"back": "join"}),
        lambda b: b.add_command_node("z", work, destinations=["a"]),
    ],
)
def test_shape_names_a_revision(change: Any) -> None:
    """Nodes, edges, routes, joins, reliefs, destinations and limits."""
    assert digest(change) != digest()


def test_changes_of_one_kind_have_names_of_their_own() -> None:
    found = [
        digest(lambda b: b.add_node("z", work)),
        digest(lambda b: b.add_command_node("z", work)),
        digest(lambda b: b.add_command_node("z", work, destinations=["a"])),
        digest(lambda b: b.add_command_node("z", work, destinations=["b"])),
    ]
    assert len(set(found)) == len(found)


def test_owner_names_a_revision() -> None:
    """Two projects' equal graphs stay apart."""
    assert define(closed(), OWNER).digest != define(closed(), Owner()).digest


class Adder:
    def __call__(self, state: Any, updates: Any) -> Any:
        return state


@pytest.mark.parametrize("reducer", [lambda state, updates: (state, updates), Adder()])
def test_whole_state_reducer_needs_a_name(reducer: Any) -> None:
    with pytest.raises(ValidationError, match="named function"):
        define(build(STEPS, reducer=reducer), OWNER)


@pytest.mark.parametrize("label", ["ä ö", "x" * 200, "yes"])
def test_label_that_is_no_id_gets_one(label: str) -> None:
    """A label's text is the author's; two nodes may use the same."""
    step = STEPS[:]
    step.append(lambda b: b.add_conditional_edges("d", pick, {label: "join"}))
    definition = define(build(step), OWNER)
    routes = {n["node_id"]: n["routes"] for n in definition.to_dict()["nodes"]}
    ids = [r["route_id"] for n in ("d", "join") for r in routes[n]]
    assert len(set(ids)) == len(ids)


def test_id_that_is_not_well_formed_is_refused() -> None:
    builder = BlueprintBuilder("shop order", state=Tally).add_node("a", work)
    with pytest.raises(GraphError):
        define(builder.set_entry("a").blueprint(), OWNER)
