"""Measuring the peers: their process does the work, raw commits of ours beside it.

A peer gets a database of its own on the same server, or a file beside ours. One that is
not installed, or cannot do the work, is named and left out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bench.databases import POSTGRES
from bench.measuring import Collected, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.databases import Database
    from bench.measuring import Row

SCRIPT = Path(__file__).with_name("peers.py")
PEERS = ("langgraph", "dbos")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work of the peers: its name in the report, in `peers.py`, and its size."""

    workload: str
    name: str
    unit: str
    units: int
    processes: int = 1
    """Do the work together; `units` are those of all of them."""
    peers: tuple[str, ...] = PEERS


TASKS = (
    Task(workload="chain of 200, sync", name="chain", unit="supersteps", units=200),
    Task(workload="fan-out of 16", name="fan", unit="activations", units=12 * 17),
    Task(workload="append 1 KB x 200", name="append", unit="supersteps", units=200),
    Task(
        workload="200 short runs, 4 processes",
        name="short",
        unit="runs",
        units=200,
        processes=4,
        peers=("langgraph",),
    ),
)


class PeerError(Exception):
    """A peer could not do the work; its own message is the text."""


class Peer:
    """A process of `peers.py` that does its work whenever it is asked."""

    def __init__(self, python: str, *arguments: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our script, our arguments
            [python, str(SCRIPT), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> Any:
        """Its next answer; what the libraries print is passed over."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            if line.startswith("= "):
                return json.loads(line[2:])
        _, errors = self._process.communicate()
        raise PeerError((errors.strip().splitlines() or ["it ended"])[-1])

    def begin(self) -> None:
        """Let it do the work once; its answer are the seconds."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def measure_peers(python: str, database: Database, only: str, runs: int) -> list[Row]:
    """A row for each peer and each of the tasks whose workload holds `only`."""
    rows = []
    for task in TASKS:
        for peer in task.peers if only in task.workload else ():
            sys.stderr.write(f"{database.alias}: {task.workload} ({peer})\n")
            try:
                rows.append(_measure(python, database, task, peer, runs))
            except PeerError as error:
                sys.stderr.write(f"{peer} is left out of {task.workload}: {error}\n")
    return rows


def _measure(python: str, database: Database, task: Task, peer: str, runs: int) -> Row:
    collected = Collected()
    with _place(database, f"{peer}_{task.name}") as (url, size):
        arguments = (python, peer, task.name, database.alias, url)
        processes: list[Peer] = []
        try:
            for _ in range(task.processes):
                # One after the other: the first one makes the peer's tables.
                processes.append(Peer(*arguments))
                processes[-1].answer()
            for _ in range(runs):
                raw, before = database.raw_rate(), size()
                seconds = _together(processes)
                grown = size() - before
                raw = statistics.mean([raw, database.raw_rate()])
                sample = Sample(unit=task.unit, units=task.units, seconds=seconds)
                collected.add(sample, raw, grown)
        finally:
            for process in processes:
                process.close()
    return collected.row(task.workload, database.alias, peer)


def _together(processes: list[Peer]) -> float:
    """Seconds until the last of them has done the work once."""
    start = time.perf_counter()
    for process in processes:
        process.begin()
    for process in processes:
        process.answer()
    return time.perf_counter() - start


@contextmanager
def _place(database: Database, name: str) -> Iterator[tuple[str, Any]]:
    """A new database or file for a peer, and how large it is."""
    if database.alias != POSTGRES:
        path = Path(database.url).with_name(f"{name}.sqlite3")
        yield str(path), lambda: _file_bytes(path)
        return
    from django.db import connections

    with connections[POSTGRES].cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')

    def size() -> int:
        with connections[POSTGRES].cursor() as cursor:
            cursor.execute("SELECT pg_database_size(%s)", [name])
            return int(cursor.fetchone()[0])

    yield urlsplit(database.url)._replace(path=f"/{name}").geturl(), size


def _file_bytes(path: Path) -> int:
    """The file and its log, which holds what was not moved into it yet."""
    logs = path.with_name(f"{path.name}-wal")
    return sum(item.stat().st_size for item in (path, logs) if item.exists())
