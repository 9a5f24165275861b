"""A worker that is told to stop, or is killed, with more claimed than it works on."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from stateknot import registry
from stateknot.models import Run
from stateknot.services import start_run
from tests.acceptance.crash_site.held_nodes import LINE, build_line
from tests.acceptance.matrix_site.evidence import check_history
from tests.acceptance.processes import (
    ManageProcess,
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
SETTINGS = "tests.acceptance.crash_site.settings"
RUNS, CLAIMED = 6, 3
"""One is driven, so many more are fetched at least: the queue in memory holds two."""


@pytest.fixture
def new_worker(
    second_process_env: dict[str, str], tmp_path: Path
) -> Callable[[str], ManageProcess]:
    """Give what starts a worker with one process, by name."""

    def start(name: str) -> ManageProcess:
        log = tmp_path / f"{name}.log"
        return start_worker(SETTINGS, second_process_env, log, "--grace=25", workers=1)

    return start


@pytest.fixture
def runs(
    second_process_env: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> list[Run]:
    """Start more runs than one worker can drive; each holds in its second node."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_line())
    return [start_run(LINE, {"folder": str(tmp_path)}) for _ in range(RUNS)]


def calls(folder: Path, name: str) -> int:
    path = folder / name
    return len(path.read_text().split()) if path.exists() else 0


def claimed() -> int:
    """How many messages somebody has fetched and not acknowledged."""
    return OrmQ.objects.filter(lock__gt=timezone.now()).count()


def wait_for_all(runs: list[Run]) -> None:
    ids = [run.id for run in runs]
    wait_until(
        lambda: Run.objects.filter(id__in=ids, status="completed").count() == RUNS,
        "the end of all runs",
    )
    for run in runs:
        check_history(run)


def test_wq_15_stop_gives_back_what_was_only_claimed(
    new_worker: Any, runs: list[Run], tmp_path: Path
) -> None:
    """WQ-15: the node that runs ends and is kept; the rest is free for others at once.

    The stop takes as long as that node: nothing else is begun, nothing is cut.
    """
    with new_worker("first") as first:
        wait_until(lambda: calls(tmp_path, "held"), "the node")
        wait_until(lambda: claimed() >= CLAIMED, "what is fetched ahead")
        first.process.send_signal(signal.SIGTERM)
        first.wait_for("draining")
        (tmp_path / "go").touch()
        assert first.end() == 0
    assert [calls(tmp_path, n) for n in ("before", "held", "after")] == [1, 1, 0]
    assert claimed() == 0
    assert OrmQ.objects.count() >= RUNS
    assert not Run.objects.exclude(lease_expires_at=None).exists()
    with new_worker("second"):
        wait_for_all(runs)
    every = [calls(tmp_path, n) for n in ("before", "held", "after")]
    assert every == [RUNS, RUNS, RUNS]


def test_wq_15_kill_costs_the_lease_and_not_the_retry_of_the_queue(
    new_worker: Any, runs: list[Run], tmp_path: Path
) -> None:
    """WQ-15: `retry` is 330 seconds here; all ends within the patience of a test."""
    with new_worker("first") as first:
        wait_until(lambda: calls(tmp_path, "held"), "the node")
        wait_until(lambda: claimed() >= CLAIMED, "what is fetched ahead")
        first.kill_all()
    (tmp_path / "go").touch()
    with new_worker("second"):
        wait_for_all(runs)
    every = [calls(tmp_path, n) for n in ("before", "held", "after")]
    assert every == [RUNS, RUNS + 1, RUNS]
