"""One child process and the process group it leads.

Owns start, end and exit code. The child has a session of its own, so Ctrl-C at the
terminal reaches only the supervisor, which then ends its children in order. Knows
nothing of what the child does. Read `worker.py` or `stack.py` next.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stateknot.management.supervision.tether import tethered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.management.supervision.inbox import SignalInbox

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start: a command line, where it logs, how it dies with its parent."""

    name: str
    argv: Sequence[str]
    on_orphaned: signal.Signals
    log: Path | None = None
    fds: tuple[int, ...] = ()


class Child:
    """A started program: the leader of its own session and process group."""

    def __init__(self, program: Program) -> None:
        self.name = program.name
        self.started_at = time.monotonic()
        self._process = _spawn(program)
        self._is_killed = False

    @property
    def pid(self) -> int:
        """Process id of the leader, and id of its group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the leader, negative for a signal, None while it lives."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask the leader, and only the leader, to end (SIGTERM)."""
        self._process.terminate()

    def kill_group(self) -> None:
        """Kill the leader and whatever its group still holds; reap the leader.

        Idempotent: once the group is gone, its number may belong to another one.
        """
        if self._is_killed:
            return
        self._is_killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def drain(children: Sequence[Child], *, grace: float, inbox: SignalInbox) -> bool:
    """End children in good order; whether each ended by itself with exit code 0.

    Each leader gets SIGTERM; what still lives after `grace` seconds, or at the
    second stop signal, is killed with its group.
    """
    for child in children:
        child.terminate()
    deadline = time.monotonic() + grace
    while any(child.exit_code is None for child in children):
        if time.monotonic() >= deadline or inbox.stops > 1:
            break
        inbox.wait(POLL_SECONDS)
    clean = all(child.exit_code in (0, -signal.SIGTERM) for child in children)
    for child in children:
        child.kill_group()
    return clean


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    log = program.log.open("ab") if program.log else None
    try:
        return subprocess.Popen(  # noqa: S603 - command lines are the supervisor's own
            tethered(list(program.argv), on_death=program.on_orphaned),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT if log else None,
            pass_fds=program.fds,
            env=_environment(),
        )
    finally:
        if log:
            log.close()


def _environment() -> dict[str, str]:
    """Return this process's, and its import path: `manage.py` extended that."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path}
