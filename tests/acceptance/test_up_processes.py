"""Web server and worker started by one command, and how they end.

See `stateknot/management/supervision/stack.py`; the worker alone is tested in
`test_worker_processes.py`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stateknot.management.supervision.stack import answers_http, is_free
from tests.acceptance.processes import ManageProcess, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="tethers and /proc need Linux"
)


@pytest.fixture
def port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        number: int = probe.getsockname()[1]
        return number


@pytest.fixture
def up(
    second_process_env: dict[str, str], tmp_path: Path, port: int
) -> Iterator[ManageProcess]:
    """Return a `stateknot_up` that has said it is ready."""
    options = [f"--port={port}", "--workers=1", f"--log-dir={tmp_path / 'log'}"]
    with ManageProcess(
        "stateknot_up",
        *options,
        # Longer than a test may take: what does not end at once fails it.
        "--grace=3600",
        env=second_process_env,
        log=tmp_path / "up.log",
    ) as process:
        process.wait_for(f"stateknot: ready on http://{HOST}:{port}/")
        process.survivors()
        yield process


def test_sigterm_ends_both_cleanly(
    up: ManageProcess, port: int, tmp_path: Path
) -> None:
    assert answers_http(HOST, port)
    up.process.send_signal(signal.SIGTERM)
    assert up.end() == 0
    assert up.survivors() == set()
    assert is_free(HOST, port)
    assert "worker: drained" in (tmp_path / "log" / "worker.log").read_text()


def test_dead_web_server_ends_the_worker(up: ManageProcess) -> None:
    web, _ = up.children()
    os.kill(web, signal.SIGKILL)
    assert up.end() == 1
    assert "web ended with exit code -9" in up.output
    up.wait_for_no_survivor()


def test_dead_worker_ends_the_web_server(up: ManageProcess, port: int) -> None:
    _, worker = up.children()
    os.kill(worker, signal.SIGKILL)
    assert up.end() == 1
    up.wait_for_no_survivor()
    assert is_free(HOST, port)


def test_killed_command_leaves_no_process(up: ManageProcess) -> None:
    assert len(up.survivors()) >= 9
    up.process.kill()
    up.process.wait()
    up.wait_for_no_survivor()


def test_second_ctrl_c_ends_both_at_once(up: ManageProcess) -> None:
    (stopped,) = [pid for pid in up.survivors() if _is_leader(pid)]
    os.kill(stopped, signal.SIGSTOP)
    up.process.send_signal(signal.SIGINT)
    wait_until(lambda: len(up.children()) < 2, "the end of the web server")
    up.process.send_signal(signal.SIGINT)
    assert up.end() == 1
    up.wait_for_no_survivor()


def _is_leader(pid: int) -> bool:
    command = Path(f"/proc/{pid}/cmdline").read_text()
    return "supervision.cluster" in command and os.getpgid(pid) == pid


def test_taken_port_is_a_clear_error(
    second_process_env: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with ManageProcess(
            "stateknot_up",
            f"--port={port}",
            env=second_process_env,
            log=tmp_path / "log",
        ) as process:
            assert process.end() == 1
            assert f"{HOST}:{port}" in process.output
