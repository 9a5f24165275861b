"""Rows of the field reports that need a worker and a database of some kind."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from stateknot import registry
from stateknot.models import Run
from stateknot.selectors import get_run
from stateknot.services import start_run
from tests.acceptance.crash_site.held_nodes import LINE, build_line
from tests.acceptance.matrix_site.evidence import check_history
from tests.acceptance.processes import (
    start_worker,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
CRASH = "tests.acceptance.crash_site.settings"
FLOWS = "tests.acceptance.flows_site.settings"
MANY = 50


@pytest.fixture
def start(
    second_process_env: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> Callable[[], Run]:
    """Give what starts a run whose nodes need not wait for the test."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_line())
    (tmp_path / "go").touch()
    return lambda: start_run(LINE, {"folder": str(tmp_path)})


def calls(folder: Path, name: str) -> int:
    return len((folder / name).read_text().split())


def test_wq_13_engine_in_a_database_of_its_own(
    start: Any, second_process_env: dict[str, str], tmp_path: Path
) -> None:
    """WQ-13: a worker and its sweep ask nothing of the default database.

    It is one that fails whatever asks it.
    """
    run = start()
    with start_worker(
        FLOWS, second_process_env, tmp_path / "worker.log", workers=3
    ) as worker:
        wait_until(lambda: get_run(run.id).is_terminal, "the end of the run")
        Run.objects.filter(id=start().id).update(woken_at=None)
        wait_until(
            lambda: Run.objects.filter(status="completed").count() == 2, "both ends"
        )
        assert "ImproperlyConfigured" not in worker.output
        assert "Traceback" not in worker.output
    check_history(get_run(run.id))


@pytest.mark.only_on("sqlite")
def test_wq_11_three_workers_and_a_writing_web_process(
    start: Any, second_process_env: dict[str, str], tmp_path: Path
) -> None:
    """WQ-11: nothing is doubled, nothing is locked out, and the web can write."""
    runs = [start() for _ in range(MANY)]
    ids = [run.id for run in runs]
    done, written = threading.Event(), []

    def write() -> None:
        while not done.is_set():
            written.append(User.objects.create(username=f"user-{len(written)}"))
        connection.close()

    writer = threading.Thread(target=write)
    with start_worker(
        CRASH, second_process_env, tmp_path / "worker.log", workers=3
    ) as worker:
        writer.start()
        try:
            wait_until(
                lambda: (
                    Run.objects.filter(id__in=ids, status="completed").count() == MANY
                ),
                "the end of all runs",
            )
        finally:
            done.set()
            writer.join()
        assert "database is locked" not in worker.output
    assert len(written) > 1
    every = [calls(tmp_path, n) for n in ("before", "held", "after")]
    assert every == [MANY, MANY, MANY]
