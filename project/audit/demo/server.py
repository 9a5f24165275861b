"""The demo's web server and worker: `stateknot_up` as a child of this process.

Owns its port, its start, its readiness and its end; what it does inside is
`stateknot/management/supervision/`.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from project.audit.demo.locks import FileLock
from stateknot.management.supervision.child import Child, Program, drain
from stateknot.management.supervision.stack import is_free

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stateknot.management.supervision.inbox import SignalInbox

HOST = "127.0.0.1"
FIRST_PORT = 8000
PORTS_TRIED = 100
START_SECONDS = 60.0
# What running nodes get to finish, and what ending everything may take at most.
NODE_GRACE_SECONDS = 10.0
GRACE_SECONDS = 25.0
POLL_SECONDS = 0.1
LOG_LINES_SHOWN = 2


class ServerError(Exception):
    """Raised when the server does not come up or ends; says where its log is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one demo serves and logs."""

    port: int
    log_dir: Path

    @property
    def origin(self) -> str:
        """The address of the server, without a path."""
        return f"http://{HOST}:{self.port}"


@contextmanager
def claimed_place(log_root: Path) -> Iterator[Place]:
    """Claim the first free port from 8000 on, with a directory for its logs.

    The claim is a lock, because a port stays free until the server listens: two demos
    that start together take two ports. Raises `ServerError` when none is free.
    """
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if not is_free(HOST, port):
            continue
        directory = log_root / f"port-{port}"
        with closing(FileLock(directory / "lock")) as lock:
            if lock.take_alone():
                yield Place(port=port, log_dir=directory)
                return
    raise ServerError(
        f"none of the {PORTS_TRIED} ports from {FIRST_PORT} on is free on {HOST}; end "
        "what listens there"
    )


@contextmanager
def running_server(place: Place, inbox: SignalInbox) -> Iterator[Child]:
    """Run web and worker; leave no process behind, however it ends.

    Gives up waiting for it at a stop signal. Raises `ServerError`.
    """
    for old in place.log_dir.glob("*.log"):
        old.unlink()
    child = Child(_program(place))
    try:
        _wait_ready(child, place.log_dir, inbox)
        yield child
    finally:
        drain([child], grace=GRACE_SECONDS, inbox=inbox)


def require_alive(server: Child, place: Place) -> None:
    """Raise `ServerError` if the server has ended."""
    if server.exit_code is not None:
        raise ServerError(f"web and worker have ended: {_explain(place.log_dir)}")


def _program(place: Place) -> Program:
    options = [
        "--no-migrate",
        f"--host={HOST}",
        f"--port={place.port}",
        f"--log-dir={place.log_dir}",
        f"--grace={NODE_GRACE_SECONDS:g}",
    ]
    return Program(
        name="stateknot_up",
        argv=[sys.executable, "-m", "django", "stateknot_up", *options],
        on_orphaned=signal.SIGTERM,
        log=place.log_dir / "up.log",
    )


def _wait_ready(child: Child, log_dir: Path, inbox: SignalInbox) -> None:
    """Wait until web and worker both said so, at most START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while "ready on" not in (log_dir / "up.log").read_text(errors="replace"):
        has_failed = child.exit_code is not None or time.monotonic() >= deadline
        # Read the signals after that: a Ctrl-C may have ended the child too.
        inbox.wait(POLL_SECONDS)
        if inbox.stops:
            return
        if has_failed:
            raise ServerError(f"web and worker did not start: {_explain(log_dir)}")


def _explain(log_dir: Path) -> str:
    """Quote the end of the supervisor's log, and say where the others are."""
    lines = (log_dir / "up.log").read_text(errors="replace").splitlines()
    quoted = " / ".join(filter(None, lines[-LOG_LINES_SHOWN:])) or "no reason given"
    return f"{quoted} (see up.log, web.log and worker.log in {log_dir})"
