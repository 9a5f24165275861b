"""A web server and a worker as one: readiness, and the end of either."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stateknot.management.supervision.child import Program
from stateknot.management.supervision.pulse import is_alive
from stateknot.management.supervision.stack import (
    ReadyPipe,
    Stack,
    answers_http,
    is_free,
    web_program,
)

LIVES = "import signal; signal.pause()"
GRACE_SECONDS = 20.0


def program(name: str, source: str) -> Program:
    """Describe a child that runs a line of Python."""
    argv = [sys.executable, "-c", source]
    return Program(name=name, argv=argv, on_orphaned=signal.SIGKILL)


def stop() -> None:
    """Stop the supervisor, which this process is."""
    os.kill(os.getpid(), signal.SIGTERM)


def test_stack_that_was_stopped_ends_cleanly(tmp_path: Path) -> None:
    said: list[str] = []
    stack = Stack([program("a", LIVES), program("b", LIVES)], is_ready=lambda: True)
    assert stack.run(grace=GRACE_SECONDS, say=said.append, on_ready=stop)
    assert said == []


def test_child_that_ends_by_itself_ends_the_stack(tmp_path: Path) -> None:
    pid_file, said = tmp_path / "pid", list[str]()
    # The name appears only once all of the content is there.
    whole = f"{pid_file}.new"
    lives = (
        f"import os; from pathlib import Path; Path({whole!r})"
        f".write_text(str(os.getpid())); os.replace({whole!r}, {str(pid_file)!r}); "
        f"{LIVES}"
    )
    fails = (
        "import os, sys\n"
        f"while not os.path.exists({str(pid_file)!r}): pass\n"
        "sys.exit(3)"
    )
    stack = Stack([program("a", lives), program("b", fails)], is_ready=lambda: False)
    assert not stack.run(grace=GRACE_SECONDS, say=said.append, on_ready=stop)
    assert said == ["b ended with exit code 3"]
    assert not is_alive(int(pid_file.read_text()))


def test_readiness_is_announced_once() -> None:
    announced: list[int] = []
    looks = iter([False, True, True, True])

    def is_ready() -> bool:
        return next(looks)

    def on_ready() -> None:
        announced.append(1)
        stop()

    stack = Stack([program("a", LIVES)], is_ready=is_ready)
    assert stack.run(grace=GRACE_SECONDS, say=lambda _: None, on_ready=on_ready)
    assert announced == [1]


def test_ready_pipe_stays_ready() -> None:
    pipe = ReadyPipe()
    assert not pipe.is_ready()
    os.write(pipe.writer_fd, b"ready\n")
    assert pipe.is_ready()
    assert pipe.is_ready()


def test_server_that_refuses_the_page_answers_all_the_same() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert answers_http("127.0.0.1", server.server_port)
        thread.join()


def test_taken_address_does_not_answer_without_a_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken_port = taken.getsockname()[1]
        assert not answers_http("127.0.0.1", taken_port)
        taken.listen()
        assert not is_free("127.0.0.1", taken_port)
    assert is_free("127.0.0.1", taken_port)


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80")]
)
def test_web_server_gets_address_and_application(host: str, address: str) -> None:
    web = web_program("shop.wsgi.application", host=host, port=80, log=None)
    assert f"--bind={address}" in web.argv
    assert web.argv[-1] == "shop.wsgi:application"
