"""Commands of the project as real processes, watched from outside.

Owns starting them, their output, and the look at everything they started. Knows no
rows; read `test_worker_processes.py` next.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

from stateknot.management.supervision.pulse import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 30.0
ROLES = {
    "guard": r"guarding cluster",
    "worker": r"ready for work at (\d+)",
    "monitor": r"monitoring at (\d+)",
    "pusher": r"pushing tasks at (\d+)",
}


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Look again and again until `condition` holds; fail at the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.05)


def start_worker(
    settings: str,
    env: dict[str, str],
    log: Path,
    *options: str,
    workers: int = 2,
    sweep_every: float = 0.5,
) -> ManageProcess:
    """A worker of the project with these settings; for a test, it sweeps often."""
    return ManageProcess(
        "stateknot_worker",
        f"--workers={workers}",
        f"--sweep-every={sweep_every}",
        *options,
        env={**env, "DJANGO_SETTINGS_MODULE": settings},
        log=log,
    )


class ManageProcess:
    """One `manage.py` command; a context manager that leaves no process behind."""

    def __init__(self, *argv: str, env: dict[str, str], log: Path) -> None:
        self._log = log
        self._seen: set[int] = set()
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", *argv],
                cwd=ROOT,
                env={**env, "PYTHONUNBUFFERED": "1"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.survivors()
        self.process.kill()
        self.process.wait()
        for pid in filter(is_alive, self._seen):
            psutil.Process(pid).kill()

    @property
    def pid(self) -> int:
        """Process id of the command itself."""
        return self.process.pid

    @property
    def output(self) -> str:
        """All that the command and its children have written so far."""
        return self._log.read_text()

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Wait until `text` stands so many times in the output."""
        wait_until(
            lambda: self.output.count(text) >= times or not is_alive(self.pid), text
        )
        assert self.output.count(text) >= times, self.output

    def end(self) -> int:
        """Wait for the end of the command; return its exit code."""
        return self.process.wait(DEADLINE_SECONDS)

    def children(self) -> list[int]:
        """Return the pids of the command's own children."""
        return [child.pid for child in psutil.Process(self.pid).children()]

    def role(self, name: str) -> list[int]:
        """Return the live cluster processes that said they play the role `name`."""
        said = (int(pid) for pid in re.findall(ROLES[name], self.output))
        return [pid for pid in said if is_alive(pid)]

    def survivors(self) -> set[int]:
        """Return what still lives of all processes seen below the command.

        Call it while the command is well, so that it sees them.
        """
        if is_alive(self.pid):
            below = psutil.Process(self.pid).children(recursive=True)
            self._seen.update(process.pid for process in below)
        return {pid for pid in self._seen if is_alive(pid)}

    def kill_all(self) -> None:
        """End it as a lost machine does: every process at once, without a word."""
        for pid in (self.pid, *self.survivors()):
            os.kill(pid, signal.SIGKILL)

    def wait_for_no_survivor(self) -> None:
        """Wait until every process seen below the command is gone."""
        wait_until(lambda: not self.survivors(), "the end of every process")
