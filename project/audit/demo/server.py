"""The demo's web server and worker: `stateknot_up` as a child of this process.

Owns its start, its readiness and its end; what it does inside is
`stateknot/management/supervision/`.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

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


class ServerError(Exception):
    """Raised when the server does not come up; says where its log is."""


def find_port() -> int:
    """Give the first free port from 8000 on. Raises `ServerError` when none is."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if is_free(HOST, port):
            return port
    raise ServerError(
        f"none of the {PORTS_TRIED} ports from {FIRST_PORT} on is free on {HOST}; end "
        "what listens there"
    )


@contextmanager
def running_server(port: int, log_dir: Path, inbox: SignalInbox) -> Iterator[Child]:
    """Run web and worker on the port; leave no process behind, however it ends."""
    log_dir.mkdir(parents=True, exist_ok=True)
    log = log_dir / "up.log"
    log.unlink(missing_ok=True)
    child = Child(_program(port, log_dir, log))
    try:
        _wait_ready(child, log, inbox)
        yield child
    finally:
        drain([child], grace=GRACE_SECONDS, inbox=inbox)


def _program(port: int, log_dir: Path, log: Path) -> Program:
    options = [
        "--no-migrate",
        f"--host={HOST}",
        f"--port={port}",
        f"--log-dir={log_dir}",
        f"--grace={NODE_GRACE_SECONDS:g}",
    ]
    return Program(
        name="stateknot_up",
        argv=[sys.executable, "-m", "django", "stateknot_up", *options],
        on_orphaned=signal.SIGTERM,
        log=log,
    )


def _wait_ready(child: Child, log: Path, inbox: SignalInbox) -> None:
    """Wait until web and worker both said so, at most START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while "ready on" not in log.read_text(errors="replace"):
        if inbox.stops:
            return
        if child.exit_code is not None or time.monotonic() >= deadline:
            raise ServerError(
                f"web server and worker did not start; the reason stands in {log} and "
                f"beside it in web.log and worker.log"
            )
        inbox.wait(POLL_SECONDS)
