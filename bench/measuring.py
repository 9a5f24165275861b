"""From work to a row of the report: runs, raw commits beside them, medians.

A workload does its work once and gives a `Sample` for each thing that it measures.
Around each of its runs raw commits are counted, so that a machine that is slow for a
moment is slow for both. Read `workloads.py` for what is done.
"""

from __future__ import annotations

import gc
import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.databases import Database

OURS = "stateknot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: how many units it did in how many seconds.

    `stored` is whether the bytes that the run left behind belong to these units.
    """

    unit: str
    units: float
    seconds: float
    stored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the report. `bytes` are those stored per unit, None where none are."""

    workload: str
    database: str
    peer: str
    unit: str
    rate: float
    raw_rate: float | None
    ratio: float | None
    bytes: float | None
    runs: int

    def to_json(self) -> dict[str, Any]:
        """The form that the file of results holds."""
        return asdict(self)


@dataclass(slots=True)
class Collected:
    """What the runs of one workload gave, by what they measured."""

    rates: list[float] = field(default_factory=list)
    raw_rates: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    unit: str = ""

    def add(self, sample: Sample, raw_rate: float, grown: int) -> None:
        """Take one run."""
        self.unit = sample.unit
        self.rates.append(sample.units / sample.seconds)
        self.raw_rates.append(raw_rate)
        if sample.stored and grown > 0:
            self.bytes.append(grown / sample.units)

    def row(self, workload: str, database: str, peer: str) -> Row:
        """The medians."""
        raw_rates = [rate for rate in self.raw_rates if rate]
        ratios = [r / raw for r, raw in zip(self.rates, raw_rates, strict=False)]
        return Row(
            workload=workload,
            database=database,
            peer=peer,
            unit=self.unit,
            rate=statistics.median(self.rates),
            raw_rate=statistics.median(raw_rates) if raw_rates else None,
            ratio=statistics.median(ratios) if ratios else None,
            bytes=statistics.median(self.bytes) if self.bytes else None,
            runs=len(self.rates),
        )


def measure(
    work: Callable[[], dict[str, Sample]],
    database: Database | None,
    runs: int,
    *,
    peer: str = OURS,
) -> list[Row]:
    """Do `work` once to warm up and then `runs` times; a row for each of its samples.

    Without a database there are no raw commits to compare with.
    """
    collected: dict[str, Collected] = {}
    work()
    for _ in range(runs):
        gc.collect()
        before = database.raw_rate() if database else 0.0
        size = database.stored_bytes() if database else 0
        samples = work()
        grown = database.stored_bytes() - size if database else 0
        after = database.raw_rate() if database else 0.0
        for name, sample in samples.items():
            held = collected.setdefault(name, Collected())
            held.add(sample, (before + after) / 2, grown)
    where = database.alias if database else "memory"
    return [held.row(name, where, peer) for name, held in collected.items()]
