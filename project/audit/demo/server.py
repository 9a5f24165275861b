"""The demo's web server and worker: `stateknot_up` as a child of this process.

Owns its port, its start, its readiness and its end; what it does inside is
`stateknot/management/supervision/`.
"""

from __future__ import annotations

import re
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
COMPLAINT = re.compile(r" (?:WARNING|ERROR|CRITICAL) ")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Web and worker of one demo, up at a place."""

    child: Child
    place: Place

    def require_alive(self) -> None:
        """Raise `ServerError` if they have ended."""
        if self.child.exit_code is not None:
            log_dir = self.place.log_dir
            raise ServerError(f"web and worker have ended: {_explain(log_dir)}")

    def quote_complaint(self) -> str:
        """Give the last warning or error in the worker's log, or say there is none."""
        log = self.place.log_dir / "worker.log"
        lines = log.read_text(errors="replace").splitlines()
        complaints = [x for x in lines if COMPLAINT.search(x)]
        return f"{complaints[-1] if complaints else 'no complaint'} (in {log})"


@contextmanager
def claimed_place(log_root: Path, first_port: int = FIRST_PORT) -> Iterator[Place]:
    """Claim the first free port from one on, with a directory for its logs.

    The claim is a lock, because a port stays free until the server listens: two demos
    that start together take two ports. Raises `ServerError` when none is free.
    """
    for port in range(first_port, FIRST_PORT + PORTS_TRIED):
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
def running_server(log_root: Path, inbox: SignalInbox) -> Iterator[Server]:
    """Run web and worker; leave no process behind, however it ends.

    Tries the next port when another program takes one first. Gives up waiting at a
    stop signal. Raises `ServerError`.
    """
    first_port = FIRST_PORT
    while True:
        with claimed_place(log_root, first_port) as place:
            child = _start(place)
            try:
                if comes_up(child, place, inbox):
                    yield Server(child=child, place=place)
                    return
            finally:
                drain([child], grace=GRACE_SECONDS, inbox=inbox)
        first_port = place.port + 1


def _start(place: Place) -> Child:
    for old in place.log_dir.glob("*.log"):
        old.unlink()
    return Child(_program(place))


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


def comes_up(child: Child, place: Place, inbox: SignalInbox) -> bool:
    """Wait until web and worker are ready; False if another program took the port."""
    deadline = time.monotonic() + START_SECONDS
    log = place.log_dir / "up.log"
    while "ready on" not in log.read_text(errors="replace"):
        has_ended = child.exit_code is not None
        # Read the signals after that: a Ctrl-C may have ended the child too.
        inbox.wait(POLL_SECONDS)
        if inbox.stops:
            return True
        if has_ended and not is_free(HOST, place.port):
            return False
        if has_ended or time.monotonic() >= deadline:
            raise ServerError(
                f"web and worker did not start: {_explain(place.log_dir)}"
            )
    return True


def _explain(log_dir: Path) -> str:
    """Quote the end of the supervisor's log, and say where the others are."""
    lines = (log_dir / "up.log").read_text(errors="replace").splitlines()
    quoted = " / ".join(filter(None, lines[-LOG_LINES_SHOWN:])) or "no reason given"
    return f"{quoted} (see up.log, web.log and worker.log in {log_dir})"
