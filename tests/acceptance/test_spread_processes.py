"""A superstep on several worker processes at once, some of them killed.

Row PE-07. The activations wait for each other, so the step ends only where they really
run side by side; nothing here waits for a time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import registry
from stateknot.models import NodeAttempt, Run
from stateknot.selectors import get_run, get_state
from stateknot.services import start_run
from tests.acceptance.processes import (
    ManageProcess,
    start_worker,
    wait_until,
)
from tests.acceptance.spread_site.parts import GRAPH, build, places, processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(180),
]
SETTINGS = "tests.acceptance.spread_site.settings"
PARTIES = 4


@pytest.fixture
def new_worker(
    second_process_env: dict[str, str], tmp_path: Path
) -> Callable[[str], ManageProcess]:
    """Give what starts a worker; two have more processes than needed."""

    def start(name: str) -> ManageProcess:
        log = tmp_path / f"{name}.log"
        return start_worker(SETTINGS, second_process_env, log, workers=3)

    return start


@pytest.fixture
def meeting(new_worker: Any, tmp_path: Path, monkeypatch: Any) -> Run:
    """Start a run of four activations that meet."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build())
    state: Any = {"folder": str(tmp_path), "parties": PARTIES}
    return start_run(GRAPH, state, thread_id="meeting")


def wait_for_end(run: Run) -> None:
    wait_until(lambda: get_run(run.id).ended_at is not None, "the end of the run")


def assert_met(run: Run) -> None:
    """The run came to its end with every update once, in active order."""
    assert get_run(run.id).status == "completed"
    log = get_state("meeting").values.log
    assert log[:PARTIES] == [str(place) for place in range(PARTIES)]
    assert set(log[PARTIES:]) == {"closed"}
    done = NodeAttempt.objects.filter(run=run, node_id="meet", status="succeeded")
    assert done.count() == PARTIES


def test_pe_07_activations_run_on_two_workers_at_once(
    new_worker: Any, meeting: Run, tmp_path: Path
) -> None:
    """PE-07: four activations, in four processes of two clusters."""
    with new_worker("one"), new_worker("two"):
        wait_for_end(meeting)
    assert_met(meeting)
    assert len(set(processes(tmp_path))) == PARTIES


def test_killed_workers_activation_is_taken_over(
    new_worker: Any, meeting: Run, tmp_path: Path
) -> None:
    """Its siblings go on; after its lease another worker runs it again."""
    hold = tmp_path / "hold"
    hold.touch()
    with new_worker("one"), new_worker("two"):
        wait_until(lambda: len(places(tmp_path)) == PARTIES, "all four")
        (killed,) = processes(tmp_path, 0)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(processes(tmp_path, 0)) > 1, "another worker")
        hold.unlink()
        wait_for_end(meeting)
    assert_met(meeting)
    lost = NodeAttempt.objects.filter(run=meeting, status="lost")
    assert list(lost.values_list("activation_id", flat=True)) == ["2:0:meet"]


def test_stopped_workers_late_result_is_refused(
    new_worker: Any, meeting: Run, tmp_path: Path
) -> None:
    """SIGSTOP until its activation was taken over and the run ended, then SIGCONT."""
    hold = tmp_path / "hold"
    hold.touch()
    with new_worker("one"), new_worker("two"):
        wait_until(lambda: len(places(tmp_path)) == PARTIES, "all four")
        (stopped,) = processes(tmp_path, 0)
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: len(processes(tmp_path, 0)) > 1, "another worker")
        hold.unlink()
        wait_for_end(meeting)
        before = _rows(meeting)
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: "activation lost" in _logs(tmp_path), "the refusal")
        assert _rows(meeting) == before
    assert_met(meeting)


def _rows(run: Run) -> tuple[Any, ...]:
    attempts = NodeAttempt.objects.filter(run=run).order_by("id")
    return (*attempts.values_list("id", "status"), get_run(run.id).next_journal)


def _logs(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.log"))
