"""The bars of the engine, and how the measured rows stand to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.graphs import ITEM_BYTES
from bench.measuring import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.measuring import Row

Rows = dict[tuple[str, str, str], "Row"]
CHAIN, FAN = "chain of 200, sync", "fan-out of 16"
SHORT, SHORT_QUEUED = "200 short runs, 4 processes", "200 short runs, 4 workers"
PG, LITE, LANGGRAPH = "postgres", "sqlite", "langgraph"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What is asked; `measure` raises KeyError where a row was not measured."""

    text: str
    measure: Callable[[Rows], float]
    least: float | None = None
    most: float | None = None

    def line(self, rows: Rows) -> str | None:
        """The bar with what was measured, or None without the rows."""
        try:
            value = self.measure(rows)
        except KeyError:
            return None
        met = (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )
        bound = (
            f"at least {self.least:,}" if self.most is None else f"at most {self.most}"
        )
        word = "met " if met else "MISS"
        return f"{word}  {self.text}: {value:,.2f} ({bound})"


def _ratio(workload: str, database: str) -> Callable[[Rows], float]:
    return lambda rows: rows[workload, database, OURS].ratio or 0.0


def _times(
    workload: str, database: str, peer: str, other: str | None = None
) -> Callable[[Rows], float]:
    """How many times the rate of `other` (default: the same workload) of `peer`."""
    return lambda rows: (
        rows[workload, database, OURS].rate
        / rows[other or workload, database, peer].rate
    )


def _milliseconds(workload: str, database: str) -> Callable[[Rows], float]:
    return lambda rows: 1_000 / rows[workload, database, OURS].rate


def _rate(workload: str, database: str) -> Callable[[Rows], float]:
    return lambda rows: rows[workload, database, OURS].rate


def _seconds(workload: str, units: int) -> Callable[[Rows], float]:
    return lambda rows: units / rows[workload, "memory", OURS].rate


def _per_byte(workload: str, database: str) -> Callable[[Rows], float]:
    return lambda rows: (rows[workload, database, OURS].bytes or 0.0) / ITEM_BYTES


BARS = (
    Bar(
        text="chain, PostgreSQL, of the raw rate", measure=_ratio(CHAIN, PG), least=0.35
    ),
    Bar(text="chain, SQLite, of the raw rate", measure=_ratio(CHAIN, LITE), least=0.4),
    Bar(
        text="chain in memory, supersteps a second",
        measure=lambda rows: rows["chain of 200, memory", "memory", OURS].rate,
        least=4_000,
    ),
    *(
        bar
        for how in ("compose", "build")
        for bar in (
            Bar(
                text=f"{how} 1,024 nodes, seconds",
                measure=_seconds(f"{how} 1,024 nodes", 1_024),
                most=1,
            ),
            Bar(
                text=f"{how}, nodes a second at 1,024 of those at 128",
                measure=_times(
                    f"{how} 1,024 nodes", "memory", OURS, f"{how} 128 nodes"
                ),
                least=0.75,
            ),
        )
    ),
    Bar(
        text="1 MB untouched, PostgreSQL, of the rate without it",
        measure=_times("1 MB field untouched", PG, OURS, "the same without it"),
        least=0.95,
    ),
    Bar(
        text="step 1,000 of the rate at step 100, PostgreSQL",
        measure=_times("chain at step 1,000", PG, OURS, "chain at step 100"),
        least=0.9,
    ),
    *(
        Bar(text=f"{name}, PostgreSQL, ms", measure=_milliseconds(name, PG), most=5)
        for name in (
            "newest state of 1,000",
            "last 20 boundaries of 1,000",
            "newest state of 1,000 appends",
        )
    ),
    Bar(
        text="append x 1,000, PostgreSQL, stored bytes per new byte",
        measure=_per_byte("append 1 KB x 1,000", PG),
        most=2,
    ),
    Bar(
        text="chain, PostgreSQL, times LangGraph",
        measure=_times(CHAIN, PG, LANGGRAPH),
        least=3,
    ),
    Bar(
        text="fan-out, PostgreSQL, times LangGraph",
        measure=_times(FAN, PG, LANGGRAPH),
        least=5,
    ),
    Bar(
        text="short runs over 4 processes, PostgreSQL, times LangGraph",
        measure=_times(SHORT, PG, LANGGRAPH),
        least=3,
    ),
    Bar(
        text="short runs over 4 workers, PostgreSQL, times LangGraph over 4 processes",
        measure=_times(SHORT_QUEUED, PG, LANGGRAPH, SHORT),
        least=3,
    ),
    Bar(
        text="wake-up to first node, PostgreSQL, ms",
        measure=_milliseconds("wake-up to first node", PG),
        most=15,
    ),
    Bar(
        text="idle worker, queries a second",
        measure=_rate("idle worker, queries", PG),
        most=1,
    ),
    Bar(
        text="idle worker of 2 processes, % of a core",
        measure=_rate("idle worker, processor", PG),
        most=2,
    ),
)


def judge(rows: Sequence[Row]) -> list[str]:
    """A line for each bar whose rows were measured."""
    found = {(row.workload, row.database, row.peer): row for row in rows}
    return [line for bar in BARS if (line := bar.line(found)) is not None]
