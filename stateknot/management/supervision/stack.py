"""A web server and a worker side by side, as one thing that starts and ends.

Owns when the whole is ready and what happens when one half ends. Must not know how
either half works inside: a child is ready when its probe says so. Read the command
`stateknot_up` next, which builds the children.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from stateknot.management.supervision.child import Child, Program, drain
from stateknot.management.supervision.inbox import SignalInbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TICK_SECONDS = 0.25
ANSWER_SECONDS = 2.0


class ReadyPipe:
    """A pipe over which a child says once that it is ready."""

    def __init__(self) -> None:
        self._reader, self.writer_fd = os.pipe()
        os.set_blocking(self._reader, False)
        self._is_ready = False

    def is_ready(self) -> bool:
        """Tell whether the child has said so by now."""
        with contextlib.suppress(BlockingIOError):
            self._is_ready = self._is_ready or bool(os.read(self._reader, 64))
        return self._is_ready


class Stack:
    """Programs that run together and end together."""

    def __init__(
        self, programs: Sequence[Program], *, is_ready: Callable[[], bool]
    ) -> None:
        self._programs = programs
        self._is_ready = is_ready
        self._children: list[Child] = []

    def run(
        self, *, grace: float, say: Callable[[str], None], on_ready: Callable[[], None]
    ) -> bool:
        """Run in this process's main thread; whether all ended cleanly and on demand.

        The first child that ends by itself ends the others too.
        """
        with SignalInbox() as inbox, contextlib.ExitStack() as cleanup:
            for program in self._programs:
                self._children.append(Child(program))
                cleanup.callback(self._children[-1].kill_group)
            ended = self._watch(inbox, on_ready)
            if ended:
                say(f"{ended.name} ended with exit code {ended.exit_code}")
            clean = drain(self._children, grace=grace, inbox=inbox)
            return clean and not ended

    def _watch(self, inbox: SignalInbox, on_ready: Callable[[], None]) -> Child | None:
        """Wait for a stop signal or, returning it, for a child that ends."""
        announced = False
        while not inbox.stops:
            for child in self._children:
                if child.exit_code is not None:
                    return child
            if not announced and self._is_ready():
                announced = True
                on_ready()
            inbox.wait(TICK_SECONDS)
        return None


def answers_http(host: str, port: int) -> bool:
    """Tell whether a web server answers there at all, with whatever status."""
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return True
    finally:
        connection.close()


def is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def web_program(application: str, *, host: str, port: int, log: Path | None) -> Program:
    """Describe the web server; `application` is Django's dotted WSGI_APPLICATION."""
    module, _, name = application.rpartition(".")
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    options = [
        f"--bind={address}",
        "--worker-class=gthread",
        "--workers=2",
        "--threads=4",
        # Its control socket lies at one path for all servers of a user.
        "--no-control-socket",
    ]
    return Program(
        name="web",
        argv=[sys.executable, "-m", "gunicorn", *options, f"{module}:{name}"],
        on_orphaned=signal.SIGTERM,
        log=log,
    )


def worker_program(
    *, workers: int, grace: float, ready_fd: int, log: Path | None
) -> Program:
    """Describe the worker, which says on `ready_fd` when it takes work."""
    options = [f"--grace={grace:g}", f"--workers={workers}", f"--ready-fd={ready_fd}"]
    return Program(
        name="worker",
        argv=[sys.executable, "-m", "django", "stateknot_worker", *options],
        on_orphaned=signal.SIGTERM,
        log=log,
        fds=(ready_fd,),
    )
