"""How long runs, steps and nodes took, and how healthy they are: pure functions.

They read observations of one run, from any journal. What has not ended is left out.
Durations are whole milliseconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stateknot.runtime.observations import Observation
    from stateknot.runtime.statuses import RunStatusRow

_RUN_ENDS = frozenset({"run.completed", "run.failed"})
_NODE_ENDS = frozenset({"node.completed", "node.failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that began and ended. `name` is a node, empty for a step or a run."""

    name: str = ""
    step: int | None = None
    duration_ms: int
    is_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Spans taken together; `average_ms` and `longest_ms` are None without any."""

    count: int
    total_ms: int
    longest_ms: int | None
    average_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a run took, and its steps and nodes in the order in which they ended."""

    run: Span | None
    steps: tuple[Span, ...]
    nodes: tuple[Span, ...]
    step_totals: Totals
    node_totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """How often a node began, ended and failed."""

    node: str
    started: int
    completed: int
    failed: int

    @property
    def failure_rate(self) -> float:
        """The share of its ends that were failures, 0 before the first."""
        ended = self.completed + self.failed
        return self.failed / ended if ended else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The nodes of a run by id, and whether anything failed."""

    nodes: tuple[NodeHealth, ...]
    is_healthy: bool


def latency_of(observations: Sequence[Observation]) -> Latency:
    """How long everything in `observations` took, in the order of their offsets."""
    steps, nodes = tuple(_steps(observations)), tuple(_nodes(observations))
    return Latency(
        run=_run(observations),
        steps=steps,
        nodes=nodes,
        step_totals=_totals(steps),
        node_totals=_totals(nodes),
    )


def duration_of(row: RunStatusRow) -> int | None:
    """How long a run took by its status row: to its end, or so far; None before."""
    until = row.ended_at or row.updated_at
    if row.started_at is None or until is None:
        return None
    return round((until - row.started_at).total_seconds() * 1000)


def health_of(observations: Iterable[Observation]) -> Health:
    """How often each node began, ended and failed."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    run_failed = False
    for told in observations:
        kind, node = told.event.kind, told.event.node
        run_failed = run_failed or kind == "run.failed"
        if node is not None and (kind == "node.started" or kind in _NODE_ENDS):
            counts[node][kind] += 1
    nodes = tuple(
        NodeHealth(
            node=node,
            started=counts[node]["node.started"],
            completed=counts[node]["node.completed"],
            failed=counts[node]["node.failed"],
        )
        for node in sorted(counts)
    )
    any_failed = any(node.failed for node in nodes)
    return Health(nodes=nodes, is_healthy=not any_failed and not run_failed)


def _run(observations: Sequence[Observation]) -> Span | None:
    """From the first start to the first end behind it."""
    start = next((o for o in observations if o.event.kind == "run.started"), None)
    end = next((o for o in observations if o.event.kind in _RUN_ENDS), None)
    if start is None or end is None:
        return None
    return _span(start, end, is_failed=end.event.kind == "run.failed")


def _steps(observations: Sequence[Observation]) -> Iterable[Span]:
    started: dict[int, Observation] = {}
    for told in observations:
        step = told.event.step
        if step is None:
            continue
        if told.event.kind == "step.started":
            started[step] = told
        elif told.event.kind == "step.completed" and step in started:
            yield _span(started.pop(step), told)


def _nodes(observations: Sequence[Observation]) -> Iterable[Span]:
    """Starts and ends of one node in one step are matched first to first."""
    started: dict[tuple[str, int | None], deque[Observation]] = defaultdict(deque)
    for told in observations:
        kind, node = told.event.kind, told.event.node
        if node is None:
            continue
        waiting = started[node, told.event.step]
        if kind == "node.started":
            waiting.append(told)
        elif kind in _NODE_ENDS and waiting:
            failed = kind == "node.failed"
            yield _span(waiting.popleft(), told, node, is_failed=failed)


def _span(
    start: Observation, end: Observation, name: str = "", *, is_failed: bool = False
) -> Span:
    return Span(
        name=name,
        step=start.event.step,
        duration_ms=end.timestamp_ms - start.timestamp_ms,
        is_failed=is_failed,
    )


def _totals(spans: Sequence[Span]) -> Totals:
    durations = [span.duration_ms for span in spans]
    count, total = len(durations), sum(durations)
    return Totals(
        count=count,
        total_ms=total,
        longest_ms=max(durations, default=None),
        average_ms=total // count if count else None,
    )
