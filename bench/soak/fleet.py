"""The workers of a soak, and what is done to them.

A strike takes one process of a worker, a whole worker, or asks one to end; whatever
ends is replaced. Only processes that were started here are touched. Knows no runs.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

_COMMAND = (
    *("manage.py", "stateknot_worker", "--workers=1", "--sweep-every=1"),
    *("--hang-after=8", "--grace=20"),
)
_KINDS = {"process": 6, "worker": 3, "term": 2}
"""What a strike may be, with how often it comes."""


class Fleet:
    """So many `stateknot_worker` commands; a context manager that leaves none."""

    def __init__(self, size: int, root: Path, logs: Path, seed: int) -> None:
        self.strikes: Counter[str] = Counter()
        self._size, self._root, self._logs = size, root, logs
        self._random = random.Random(seed)  # noqa: S311 - chooses victims
        self._count = 0
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.fill()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for worker in self._workers:
            _kill_all(worker)

    def fill(self) -> None:
        """Start workers until there are enough that nobody asked to end."""
        for worker in [w for w in self._workers if w.poll() is not None]:
            self._workers.remove(worker)
        while len(self._workers) < self._size:
            self._workers.append(self._start())

    def _start(self) -> subprocess.Popen[bytes]:
        self._count += 1
        with (self._logs / f"worker-{self._count}.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - a command of this repository
                [sys.executable, *_COMMAND],
                cwd=self._root,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def strike(self) -> None:
        """Kill something; the fleet is full again behind it."""
        worker = self._random.choice(self._workers)
        kind = self._random.choices(list(_KINDS), list(_KINDS.values()))[0]
        self.strikes[kind] += 1
        if kind == "process":
            self._kill_one(worker)
        elif kind == "worker":
            _kill_all(worker)
        else:
            worker.send_signal(signal.SIGTERM)
        self.fill()

    def _kill_one(self, worker: subprocess.Popen[bytes]) -> None:
        below = _below(worker)
        if below:
            _kill(self._random.choice(below).pid)


def _below(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(worker.pid).children(recursive=True)
    return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_all(worker: subprocess.Popen[bytes]) -> None:
    """End a worker as a lost machine does: every process at once."""
    pids = [worker.pid, *(process.pid for process in _below(worker))]
    for pid in pids:
        _kill(pid)
    worker.wait()
