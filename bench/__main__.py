"""Measure: `python -m bench [--only TEXT] [--database KIND] [--peers PYTHON]`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bench.databases import POSTGRES, SQLITE, open_databases

if TYPE_CHECKING:
    from bench.databases import Database
    from bench.measuring import Row


def main() -> None:
    """Run what the command line asks for, print the table, write the results."""
    options = _options()
    kinds = options.database or [POSTGRES, SQLITE]
    with open_databases(kinds, options.folder) as databases:
        rows = _measure(options, databases)
    from bench.report import print_report, write_results

    print_report(rows)
    write_results(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--database", action="append", choices=(POSTGRES, SQLITE))
    parser.add_argument("--runs", type=int, default=5, help="of each workload")
    parser.add_argument("--folder", help="where the databases' files lie")
    parser.add_argument("--peers", help="a Python that has LangGraph and DBOS")
    return parser.parse_args()


def _measure(options: argparse.Namespace, databases: dict[str, Database]) -> list[Row]:
    from bench.measuring import measure
    from bench.peer_runs import measure_peers
    from bench.workloads import memory_workloads, workloads_of

    rows: list[Row] = []
    for database in (None, *databases.values()):
        listed = workloads_of(database) if database else memory_workloads()
        for workload in listed:
            if options.only in workload.name:
                _say(workload.name, database)
                rows += measure(workload.work, database, options.runs)
        if options.peers and database:
            rows += measure_peers(options.peers, database, options.only, options.runs)
    return rows


def _say(name: str, database: Database | None) -> None:
    where = database.alias if database else "memory"
    sys.stderr.write(f"{where}: {name}\n")


if __name__ == "__main__":
    main()
