"""How many statements a superstep and a reader cost, counted at the connection.

BEGIN and COMMIT are seen as well, so that a superstep can be told from the next. The
counts are of a run that goes on: the first boundary of a drive reads where it stands.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel

from stateknot import (
    START,
    CompiledGraph,
    GraphBuilder,
    MemoryCheckpointer,
    RecursionPolicy,
    append,
)
from stateknot.errors import NodeFailedError
from stateknot.storage import DjangoCheckpointer
from tests.storage.hand_driver import HandDriver

LONG = 1_000


class Log(BaseModel):
    count: int = 0
    items: Annotated[list[str], append] = []
    untouched: str = ""


def step(log: Log) -> dict[str, Any]:
    return {"count": log.count + 1, "items": [f"item {log.count}"]}


def loop(graph_id: str, supersteps: int) -> CompiledGraph:
    """A graph of one node that runs `supersteps` times."""
    builder = GraphBuilder(graph_id, state=Log)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    builder.add_conditional_edges(
        "step",
        lambda log: "more" if log.count < supersteps else "done",
        {"more": "step", "done": "__end__"},
    )
    builder.with_recursion_limit(supersteps + 1)
    graph = builder.compile().with_checkpointer(DjangoCheckpointer())
    return graph.with_recursion_policy(RecursionPolicy(max_total_steps=supersteps + 1))


def transactions(queries: list[dict[str, str]]) -> list[list[str]]:
    """The statements of each transaction, by their first word."""
    found: list[list[str]] = []
    for query in queries:
        word = query["sql"].split()[0].upper()
        if word == "BEGIN":
            found.append([])
        elif word != "COMMIT":
            found[-1].append(word)
    return found


ADMISSION = 12
"""Statements that admit and claim a run of a known revision on a new thread."""
FOUR = ["BEGIN", "UPDATE", "INSERT", "INSERT", "INSERT", "COMMIT"]


def words_of(graph: CompiledGraph, supersteps: int) -> list[str]:
    """The first word of each statement of a run of `supersteps`."""
    with CaptureQueriesContext(connection) as captured:
        execution = graph.run(Log())
    assert execution.steps == supersteps
    return [q["sql"].split()[0].upper() for q in captured.captured_queries]


@pytest.mark.only_on("sqlite")
@pytest.mark.django_db(transaction=True)
def test_superstep_is_one_transaction_of_four_statements() -> None:
    """Nothing is asked in between either, and the last superstep costs no more."""
    assert words_of(loop("tests.statements", 6), 6)[-30:] == FOUR * 5


@pytest.mark.only_on("postgres")
@pytest.mark.django_db(transaction=True)
def test_superstep_is_one_statement_and_so_its_own_transaction() -> None:
    """The last one also says how the run ended, in four."""
    words = words_of(loop("tests.one_statement", 6), 6)
    assert words[-10:] == ["WITH"] * 4 + FOUR


@pytest.mark.django_db(transaction=True)
def test_run_begun_here_is_not_read_again() -> None:
    """Behind its admission there is nothing but its boundaries."""
    graph = loop("tests.statements_first", 1)
    graph.run(Log())
    with CaptureQueriesContext(connection) as captured:
        graph.run(Log())
    admission, last = transactions(captured.captured_queries)
    assert last == ["UPDATE"] + ["INSERT"] * 3
    assert len(admission) == ADMISSION


@pytest.mark.django_db(transaction=True)
def test_first_boundary_of_a_drive_reads_where_it_stands() -> None:
    """Three reads more: the run under its fence, the head's places, the journal."""
    store = DjangoCheckpointer()
    broken = [True]

    def fails_once(log: Log) -> dict[str, Any]:
        if broken.pop():
            broken.append(False)
            raise ValueError("once")
        return {"count": 1}

    builder = GraphBuilder("tests.statements_taken_up", state=Log)
    builder.add_node("step", fails_once).add_edge(START, "step")
    graph = builder.compile().with_checkpointer(store)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", Log())
    elsewhere = graph.with_checkpointer(DjangoCheckpointer())
    with CaptureQueriesContext(connection) as captured:
        elsewhere.retry("t")
    last = transactions(captured.captured_queries)[-1]
    # On PostgreSQL the lock is bounded first.
    bound = ["SET"] if connection.vendor == "postgresql" else []
    assert last == bound + ["SELECT"] * 3 + ["UPDATE"] + ["INSERT"] * 3


@pytest.fixture
def long_thread(db: None) -> HandDriver:
    """A thread of 1,000 supersteps, each of which appends an item."""
    driver = HandDriver(DjangoCheckpointer())
    for number in range(LONG):
        driver.commit(appends={"log": [number]}, changes={"mark": str(number)})
    return driver


def test_newest_state_of_a_long_thread_takes_two_queries(
    long_thread: HandDriver, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(2):
        found = long_thread.store.find_checkpoint("t")
    assert found is not None
    assert found.values["log"] == list(range(LONG))


def test_any_older_state_takes_at_most_three_queries(
    long_thread: HandDriver, django_assert_max_num_queries: Any
) -> None:
    ids = {r.sequence: r.id for r in long_thread.store.list_checkpoints("t")}
    for sequence in (0, 1, LONG // 2, LONG - 1):
        with django_assert_max_num_queries(3):
            found = long_thread.store.find_checkpoint("t", ids[sequence])
        assert found is not None
        assert found.values["log"] == list(range(sequence))


def test_last_boundaries_of_a_long_thread_take_three_queries(
    long_thread: HandDriver, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(3):
        found = long_thread.store.list_checkpoints("t", limit=20)
    assert [record.sequence for record in found] == list(range(LONG, LONG - 20, -1))
    assert found[0].values["log"] == list(range(LONG))


def test_memory_store_is_asked_nothing_by_a_run_without_database(
    django_assert_num_queries: Any, db: None
) -> None:
    graph = loop("tests.statements_none", 3).with_checkpointer(MemoryCheckpointer())
    with django_assert_num_queries(0):
        graph.run(Log())
