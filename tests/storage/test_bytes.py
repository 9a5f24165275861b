"""What a long thread takes in PostgreSQL: bytes grow with what changed.

Sizes are those of the tables with their indexes and TOAST: the sum over all
`stateknot_` tables before and after a run of 1,000 supersteps.
"""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from django.db import connection
from pydantic import BaseModel

from stateknot import START, GraphBuilder, RecursionPolicy, append
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot import CompiledGraph

pytestmark = [
    pytest.mark.only_on("postgres"),
    pytest.mark.django_db(transaction=True),
]

SUPERSTEPS = 1_000
ITEM = 1_024
MEGABYTE = 1_000_000
MOST_BYTES = 4 * MEGABYTE


class Log(BaseModel):
    count: int = 0
    items: Annotated[list[str], append] = []
    untouched: str = ""


def stored_bytes() -> int:
    """Bytes of every table of the engine, indexes included."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND starts_with(relname, 'stateknot_')"
        )
        (size,) = cursor.fetchone()
    return int(size)


def noise(length: int, seed: int) -> str:
    """Text that a database compresses little, the same in each session."""
    letters = string.ascii_letters + string.digits
    return "".join(random.Random(seed).choices(letters, k=length))  # noqa: S311 - filler


def loop(graph_id: str, step: Callable[[Log], dict[str, Any]]) -> CompiledGraph:
    """A graph of one node that runs 1,000 times."""
    builder = GraphBuilder(graph_id, state=Log)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges(
        "step",
        lambda log: "more" if log.count < SUPERSTEPS else "done",
        {"more": "step", "done": "__end__"},
    )
    builder.with_recursion_limit(SUPERSTEPS)
    graph = builder.compile().with_checkpointer(DjangoCheckpointer())
    return graph.with_recursion_policy(RecursionPolicy(max_total_steps=SUPERSTEPS))


def growth(graph: CompiledGraph, state: Log) -> int:
    before = stored_bytes()
    assert graph.run(state).state.count == SUPERSTEPS
    return stored_bytes() - before


def append_item(log: Log) -> dict[str, Any]:
    return {"count": log.count + 1, "items": [noise(ITEM, log.count)]}


def count(log: Log) -> dict[str, Any]:
    return {"count": log.count + 1}


def test_appended_items_store_little_more_than_themselves() -> None:
    """1,000 supersteps of an appended 1 KB item store less than 4 MB."""
    size = growth(loop("tests.bytes_append", append_item), Log())
    print(f"{size:,} bytes for {SUPERSTEPS:,} items of {ITEM:,}")  # noqa: T201
    assert SUPERSTEPS * ITEM < size < MOST_BYTES


def test_untouched_field_costs_nothing_per_superstep() -> None:
    graph = loop("tests.bytes_untouched", count)
    small = growth(graph, Log())
    large = growth(graph, Log(untouched=noise(MEGABYTE, 0)))
    assert large < small + 1.2 * MEGABYTE
