"""What a real worker costs and how soon it begins: a `stateknot_worker` and its queue.

Owns the worker's process, what it burns while nothing is to do, and the way of a run
through the queue. Linux alone shares the clock and counts as it is read here. Read
`workloads.py` next for how this joins the rest.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measuring import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.databases import Database

RUNS, SHORT_RUNS, PROCESSES = 50, 200, 4
IDLE_SECONDS = 20.0
_LONGEST_WAIT_SECONDS = 60.0
_MARK = "bench-worker"


@contextmanager
def worker(database: Database, processes: int) -> Iterator[int]:
    """Run a worker with so many processes until the block ends; its process id."""
    reader, writer = os.pipe()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [
            *(sys.executable, "-m", "django", "stateknot_worker"),
            *(f"--workers={processes}", f"--ready-fd={writer}"),
        ],
        pass_fds=(writer,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "bench.site.settings",
            "STATEKNOT_BENCH_URLS": json.dumps({database.alias: database.url}),
            "PGAPPNAME": _MARK,
        },
    )
    os.close(writer)
    try:
        if not os.read(reader, 1):
            raise RuntimeError("the worker ended before it was ready")
        yield process.pid
    finally:
        os.close(reader)
        process.terminate()
        process.wait()


def measure_wake_ups(database: Database) -> dict[str, Sample]:
    """From the commit of a start to the call of the first node; one run at a time."""
    name = "wake-up to first node"
    with worker(database, 2):
        _await_all([_start("bench.first")])
        waits = [_wake_up() for _ in range(RUNS)]
    seconds = statistics.median(waits)
    return {name: Sample(unit="wake-ups", units=1, seconds=seconds, stored=False)}


def measure_short_runs(database: Database) -> dict[str, Sample]:
    """So many runs started at once, until the last of them has ended."""
    name = f"{SHORT_RUNS} short runs, {PROCESSES} workers"
    with worker(database, PROCESSES):
        _await_all([_start("bench.short") for _ in range(2 * PROCESSES)])
        begun = time.perf_counter()
        _await_all([_start("bench.short") for _ in range(SHORT_RUNS)])
        seconds = time.perf_counter() - begun
    return {name: Sample(unit="runs", units=SHORT_RUNS, seconds=seconds)}


def measure_idling(database: Database) -> dict[str, Sample]:
    """Statements and processor time of a worker that has nothing to do."""
    with worker(database, 2) as pid, _logged(database) as count:
        _await_all([_start("bench.first")])
        time.sleep(1.0)
        statements, burnt, begun = count(), _cpu_seconds(pid), time.perf_counter()
        time.sleep(IDLE_SECONDS)
        statements, burnt = count() - statements, _cpu_seconds(pid) - burnt
        seconds = time.perf_counter() - begun
    return {
        "idle worker, queries": Sample(
            unit="queries", units=statements, seconds=seconds, stored=False
        ),
        "idle worker, processor": Sample(
            unit="% of a core", units=100 * burnt, seconds=seconds, stored=False
        ),
    }


def _start(graph_id: str) -> str:
    from stateknot.services import start_run

    return str(start_run(graph_id, {}).id)


def _wake_up() -> float:
    from stateknot.models import Run
    from stateknot.selectors import get_state_history

    run_id = _start("bench.first")
    committed = time.monotonic()
    _await_all([run_id])
    thread = Run.objects.select_related("thread").get(id=run_id).thread.key
    return float(get_state_history(thread)[0].values.at) - committed


def _await_all(run_ids: list[str]) -> None:
    from stateknot.models import Run

    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    left = Run.objects.filter(id__in=run_ids).exclude(status="completed")
    while left.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"runs did not end: {list(left.values_list('status'))}")
        time.sleep(0.005)


@contextmanager
def _logged(database: Database) -> Iterator[Any]:
    """Have the server log each statement; gives what counts those of the worker."""
    from django.db import connections

    log = Path(database.log)

    def set_all(value: str) -> None:
        with connections[database.alias].cursor() as cursor:
            cursor.execute(f"ALTER SYSTEM SET log_statement = '{value}'")
            cursor.execute("ALTER SYSTEM SET log_line_prefix = '%a| '")
            cursor.execute("SELECT pg_reload_conf()")

    def count() -> int:
        lines = log.read_text(errors="replace").splitlines()
        return sum(
            line.startswith(f"{_MARK}|")
            and ("statement: " in line or "execute " in line)
            for line in lines
        )

    set_all("all")
    try:
        yield count
    finally:
        set_all("none")


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process and of all below it."""
    import psutil

    root = psutil.Process(pid)
    times = [p.cpu_times() for p in (root, *root.children(recursive=True))]
    return sum(t.user + t.system for t in times)
