"""The table that is printed, the bars it is held against, and the file of results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bars import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measuring import Row

RESULTS = Path(__file__).with_name("results.json")
_HEADINGS = (
    "workload",
    "database",
    "peer",
    "rate/s",
    "unit",
    "raw/s",
    "ratio",
    "bytes",
    "runs",
)


def print_report(rows: Sequence[Row]) -> None:
    """Print the table, and below it what is asked of it."""
    sys.stdout.write("\n".join(["", table(rows), "", *judge(rows), ""]))


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table; bytes are those stored per unit."""
    cells = [list(_HEADINGS), *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    return [
        row.workload,
        row.database,
        row.peer,
        f"{row.rate:,.0f}" if row.rate >= 100 else f"{row.rate:,.1f}",
        row.unit,
        "" if row.raw_rate is None else f"{row.raw_rate:,.0f}",
        "" if row.ratio is None else f"{row.ratio:.3f}",
        "" if row.bytes is None else f"{row.bytes:,.0f}",
        str(row.runs),
    ]


def write_results(rows: Sequence[Row]) -> None:
    """Write all rows to the file of results, replacing those of an earlier run."""
    data = [row.to_json() for row in rows]
    RESULTS.write_text(json.dumps(data, indent=1) + "\n")
