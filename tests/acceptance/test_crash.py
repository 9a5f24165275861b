"""Workers are killed or frozen in the middle of a node, and the run still finishes.

Real clusters on the session's database: `stateknot_worker` drives what the queue brings
and sweeps by itself. Nothing here waits for a time, only for what can be seen.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import registry
from stateknot.models import Checkpoint, NodeAttempt, Run
from stateknot.selectors import get_run, get_state_history, get_timeline
from stateknot.services import start_run
from tests.acceptance.crash_site.held_nodes import FAN, LINE, build_fan, build_line
from tests.acceptance.matrix_site.evidence import check_history
from tests.acceptance.processes import (
    ManageProcess,
    start_worker,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
SETTINGS = "tests.acceptance.crash_site.settings"


@pytest.fixture
def new_worker(
    second_process_env: dict[str, str], tmp_path: Path
) -> Callable[[str], ManageProcess]:
    """Give what starts a worker of the crash site, by name."""

    def start(name: str) -> ManageProcess:
        log = tmp_path / f"{name}.log"
        return start_worker(SETTINGS, second_process_env, log)

    return start


@pytest.fixture
def start(
    second_process_env: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> Callable[[str], Run]:
    """Give what starts a run of a graph that this process knows for the test alone."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_line())
    registry.register(build_fan())
    return lambda graph_id: start_run(graph_id, {"folder": str(tmp_path)})


def lines(folder: Path, name: str) -> list[int]:
    """The process of each call of a node, oldest first."""
    path = folder / name
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for_end(run: Run) -> Run:
    wait_until(lambda: get_run(run.id).is_terminal, "the end of the run")
    return get_run(run.id)


def test_wq_05_killed_worker_in_the_middle_of_a_node_loses_nothing(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """WQ-05: its lease ends, and the node is offered again."""
    run = start(LINE)
    with new_worker("first") as first:
        wait_until(lambda: lines(tmp_path, "held"), "the node")
        first.kill_all()
    assert get_run(run.id).status == "running"
    (tmp_path / "go").touch()
    with new_worker("second"):
        run = wait_for_end(run)
    assert (run.status, run.epoch) == ("completed", 2)
    newest = get_state_history(run.thread.key)[0]
    assert newest.values.log == ["before", "hold", "after"]
    assert [len(lines(tmp_path, n)) for n in ("before", "held", "after")] == [1, 2, 1]
    check_history(run)
    kinds = [event.kind for row in get_timeline(run.id) for event in row.events]
    assert kinds.count("lease.expired") == 1


def test_finished_sibling_of_a_killed_node_is_not_run_again(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Decision 8: its result was flushed while its sibling still ran."""
    run = start(FAN)
    with new_worker("first") as first:
        kept = NodeAttempt.objects.filter(
            run=run, node_id="quick", result__isnull=False
        )
        wait_until(lambda: kept.exists() and lines(tmp_path, "held"), "the result")
        first.kill_all()
    (tmp_path / "go").touch()
    with new_worker("second"):
        run = wait_for_end(run)
    assert run.status == "completed"
    newest = get_state_history(run.thread.key)[0]
    assert newest.values.log == ["hold", "quick", "after"]
    assert len(lines(tmp_path, "quick")) == 1
    assert len(lines(tmp_path, "held")) == 2
    check_history(run)


def test_frozen_worker_that_wakes_up_again_writes_nothing(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Its lease went to another: what it brings late is refused by the fence."""
    run = start(LINE)
    with new_worker("both") as worker:
        wait_until(lambda: lines(tmp_path, "held"), "the node")
        (frozen,) = lines(tmp_path, "held")
        os.kill(frozen, signal.SIGSTOP)
        (tmp_path / "go").touch()
        run = wait_for_end(run)
        before = list(Checkpoint.objects.values_list("id", "digest"))
        os.kill(frozen, signal.SIGCONT)
        worker.wait_for("lease lost")
    assert (run.status, run.epoch) == ("completed", 2)
    assert list(Checkpoint.objects.values_list("id", "digest")) == before
    assert lines(tmp_path, "held")[1] != frozen
    assert get_run(run.id).head_id == run.head_id
    check_history(run)
