"""How long things took and how healthy they are, from fixed lists of events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import RunStatus
from stateknot.errors import NodeFailedError
from stateknot.kernel.records import Event
from stateknot.runtime.journal import StoreJournal
from stateknot.runtime.observations import Observation
from stateknot.runtime.rollups import (
    NodeHealth,
    Span,
    Totals,
    duration_of,
    health_of,
    latency_of,
)
from stateknot.runtime.statuses import RunStatusRow
from tests.runtime.clock import START_OF_TIME
from tests.runtime.families import line
from tests.runtime.graphs import Flaky, note


def told(*rows: tuple[int, str, int | None, str | None]) -> list[Observation]:
    """Observations from millisecond, kind, step and node."""
    return [
        Observation(
            run_id="r",
            root_run_id="r",
            parent_run_id=None,
            thread_id="t",
            graph_id="g",
            namespace=(),
            offset=offset,
            at=START_OF_TIME + timedelta(milliseconds=at),
            step=step,
            event=Event(kind=kind, step=step, node=node),
        )
        for offset, (at, kind, step, node) in enumerate(rows)
    ]


RUN = told(
    (0, "run.started", None, None),
    (10, "step.started", 1, None),
    (10, "node.started", 1, "a"),
    (12, "node.started", 1, "a"),
    (30, "node.completed", 1, "a"),
    (45, "node.completed", 1, "a"),
    (50, "step.completed", 1, None),
    (60, "step.started", 2, None),
    (61, "node.started", 2, "b"),
    (75, "node.failed", 2, "b"),
    (80, "run.failed", None, None),
)


def test_latency_of_a_run() -> None:
    """Scenario 168: exact numbers; equal nodes of a step are matched first to first."""
    found = latency_of(RUN)
    assert found.run == Span(duration_ms=80, is_failed=True)
    assert found.steps == (Span(step=1, duration_ms=40),)
    assert found.nodes == (
        Span(name="a", step=1, duration_ms=20),
        Span(name="a", step=1, duration_ms=33),
        Span(name="b", step=2, duration_ms=14, is_failed=True),
    )


def test_totals_of_a_run() -> None:
    """Scenario 168: averages are whole numbers, rounded down."""
    found = latency_of(RUN)
    assert found.step_totals == Totals(
        count=1, total_ms=40, longest_ms=40, average_ms=40
    )
    assert found.node_totals == Totals(
        count=3, total_ms=67, longest_ms=33, average_ms=22
    )


def test_latency_of_nothing() -> None:
    """Scenario 168: no averages without anything."""
    found = latency_of([])
    assert (found.run, found.steps, found.nodes) == (None, (), ())
    assert found.node_totals == Totals(
        count=0, total_ms=0, longest_ms=None, average_ms=None
    )


def test_run_that_goes_on_has_no_latency_yet() -> None:
    """Section 8.4: what has not ended is left out."""
    found = latency_of(RUN[:4])
    assert (found.run, found.steps, found.nodes) == (None, (), ())


def test_health_of_a_run() -> None:
    """Scenario 168."""
    found = health_of(RUN)
    assert found.nodes == (
        NodeHealth(node="a", started=2, completed=2, failed=0),
        NodeHealth(node="b", started=1, completed=0, failed=1),
    )
    assert [node.failure_rate for node in found.nodes] == [0.0, 1.0]
    assert not found.is_healthy


@pytest.mark.parametrize(
    ("rows", "is_healthy"), [(RUN[:7], True), (RUN[-1:], False), ([], True)]
)
def test_run_is_healthy_without_failures(
    rows: list[Observation], is_healthy: bool
) -> None:
    """Section 8.4: neither a node nor the run failed."""
    assert health_of(rows).is_healthy is is_healthy


def test_failure_rate_before_the_first_end() -> None:
    assert NodeHealth(node="n", started=3, completed=0, failed=0).failure_rate == 0.0
    assert NodeHealth(node="n", started=4, completed=3, failed=1).failure_rate == 0.25


def test_duration_of_a_status() -> None:
    """Section 8.4: to its end, else so far."""
    row = RunStatusRow(
        run_id="r",
        graph_id="g",
        status=RunStatus.RUNNING,
        started_at=START_OF_TIME,
        updated_at=START_OF_TIME + timedelta(milliseconds=70),
    )
    assert duration_of(row) == 70
    assert duration_of(RunStatusRow(run_id="r", graph_id="g")) is None


def test_rollups_read_the_journal_of_the_store(checkpointer: Any) -> None:
    """A real run: what it told is enough."""
    graph = line("tests.r", {"a": note("a"), "b": Flaky("b")})
    graph = graph.with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    rows = StoreJournal(checkpointer).read_from(failed.value.run_id)
    assert [(n.node, n.failed) for n in health_of(rows).nodes] == [("a", 0), ("b", 1)]
    found = latency_of(rows)
    assert found.run is not None
    assert [span.name for span in found.nodes] == ["a", "b"]
