"""Composed graphs with real worker processes: the six situations of the contract.

Situations are those of spec/composition.md, section 4.8. Nothing here waits for a time,
only for what can be seen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import F

from stateknot import registry
from stateknot.models import Checkpoint, NodeAttempt, Run, Wait
from stateknot.selectors import get_run, get_state
from stateknot.services import start_run
from tests.acceptance.composition_site.loops import GRAPH, build
from tests.acceptance.processes import ROOT, ManageProcess, wait_until
from tests.runtime.composed import LIMITED, LOOP_2, LOOP_3

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
SETTINGS = "tests.acceptance.composition_site.settings"
WAITING = "wait_successors_mapped_to_parent"
CODE = "runtime.graph.superstep_limit_reached"
ONE_PASS = """
import sys
import django
django.setup()
from stateknot.runtime.budget import Quantum
from stateknot.runtime.worker import drive_run
from stateknot.storage import DjangoCheckpointer
drive_run(DjangoCheckpointer(), sys.argv[1], Quantum(supersteps=1))
"""


@pytest.fixture
def site_env(second_process_env: dict[str, str]) -> Callable[[str], dict[str, str]]:
    """Give the environment of a process that registers a composition."""

    def env(composition: str) -> dict[str, str]:
        named = {"DJANGO_SETTINGS_MODULE": SETTINGS, "COMPOSITION": composition}
        return {**second_process_env, **named}

    return env


@pytest.fixture
def new_worker(site_env: Any, tmp_path: Path) -> Callable[..., ManageProcess]:
    """Give what starts a worker that knows one composition."""

    def start(composition: str, name: str = "worker") -> ManageProcess:
        return ManageProcess(
            "stateknot_worker",
            "--workers=1",
            "--sweep-every=0.5",
            env=site_env(composition),
            log=tmp_path / f"{name}.log",
        )

    return start


@pytest.fixture
def start(
    second_process_env: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> Callable[..., Run]:
    """Give what starts a run of a composition that this process knows for the test."""
    monkeypatch.setattr(registry, "_graphs", {})

    def admitted(composition: str, stop_after: int = 99) -> Run:
        registry.register(build(composition))
        state = {"folder": str(tmp_path), "stop_after": stop_after}
        return start_run(GRAPH, state, thread_id="t")

    return admitted


def calls(folder: Path) -> list[tuple[str, int]]:
    """Node and superstep of each call, oldest first."""
    return [(node, int(step)) for node, step, *_ in _lines(folder)]


def processes(folder: Path) -> set[str]:
    return {pid for _, _, pid, _ in _lines(folder)}


def _lines(folder: Path) -> list[list[str]]:
    path = folder / "calls"
    return (
        [line.split() for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )


def wait_for(run: Run, *statuses: str) -> Run:
    wait_until(lambda: get_run(run.id).status in statuses, f"status {statuses}")
    return get_run(run.id)


def kill_all(worker: ManageProcess) -> None:
    """End a worker as a lost machine does: every process at once, without a word."""
    for pid in (worker.pid, *worker.survivors()):
        os.kill(pid, signal.SIGKILL)


def test_changed_template_is_refused_before_anything_runs(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 1, scenario 76: nothing failed, and a process that has it goes on."""
    run = start(LOOP_3, stop_after=1)
    with new_worker(LOOP_2, "other") as other:
        other.wait_for(build(LOOP_2).digest)
        assert build(LOOP_3).digest in other.output
    run = get_run(run.id)
    assert (run.status, run.epoch, run.holder) == ("pending", 0, "")
    assert calls(tmp_path) == []
    with new_worker(LOOP_3):
        assert wait_for(run, "completed", "failed").status == "completed"
    assert {graph for *_, graph in _lines(tmp_path)} == {build(LOOP_3).digest}


def test_orphan_is_taken_over_under_a_higher_epoch(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 2, scenario 75: one activation, two attempts, the first one lost."""
    (tmp_path / "hold").touch()
    run = start(LOOP_2, stop_after=1)
    with new_worker(LOOP_2, "first") as first:
        wait_until(lambda: calls(tmp_path), "the node")
        kill_all(first)
    (tmp_path / "hold").unlink()
    with new_worker(LOOP_2, "second"):
        run = wait_for(run, "completed", "failed")
    (entry,) = build(LOOP_2).blueprint.entry
    tried = NodeAttempt.objects.filter(node_id=entry).order_by("number")
    assert [(a.number, a.status) for a in tried] == [(1, "lost"), (2, "succeeded")]
    assert len({attempt.activation_id for attempt in tried}) == 1
    assert (run.status, run.epoch) == ("completed", 2)
    assert [step for _, step in calls(tmp_path)] == [0, 0, 1, 2]


def test_every_superstep_by_a_new_process_is_one_run(
    site_env: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 3, scenarios 71, 73: rebuilt from nothing each time; early exit."""
    run = start(LOOP_3, stop_after=2)
    for _ in range(6):
        subprocess.run(
            [sys.executable, "-c", ONE_PASS, str(run.id)],
            cwd=ROOT,
            env=site_env(LOOP_3),
            check=True,
            timeout=60,
        )
    run = get_run(run.id)
    assert run.status == "completed"
    assert get_state("t").values.step == "iteration-1"
    assert [step for _, step in calls(tmp_path)] == [0, 1, 2, 3, 4]
    assert len({node for node, _ in calls(tmp_path)}) == 5
    assert len(processes(tmp_path)) == 5
    assert Checkpoint.objects.count() == 6
    assert bytes(run.output) == b'{"ok":true}'


def test_exhausted_loop_fails_with_the_code_of_its_author(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 4, scenario 72."""
    run = start(LOOP_2)
    with new_worker(LOOP_2):
        run = wait_for(run, "completed", "failed")
    assert (run.status, run.error_code) == ("failed", "graph.loop_exhausted")
    assert len(calls(tmp_path)) == 5
    assert calls(tmp_path)[-1] == ("exhausted", 4)


def test_step_limit_is_recorded_once_its_usage_is_known(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 5, scenarios 77 to 79: no start past the limit, over restarts."""
    run = start(LIMITED)
    with new_worker(LIMITED, "first") as first:
        run = wait_for(run, "closing", "failed")
        first.wait_for("usage unknown", times=2)
    assert (run.status, run.error_code, run.holder) == ("closing", "", "")
    with new_worker(LIMITED, "second") as second:
        second.wait_for("usage unknown")
        (tmp_path / "usage").write_text('{"tokens": 3}')
        run = wait_for(run, "failed")
    assert (run.error_code, run.error["usage"]) == (CODE, {"tokens": 3})
    assert run.lease_expires_at is None
    assert [step for _, step in calls(tmp_path)] == [0, 1]


def test_handed_over_limit_is_not_asked_about_again(
    site_env: Any, new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 5, scenario 79: repeated without usage, the first failure stays."""
    (tmp_path / "usage").write_text('{"tokens": 3}')
    run = start(LIMITED)
    with new_worker(LIMITED):
        run = wait_for(run, "closing", "failed")
    (tmp_path / "usage").unlink()
    repeated = subprocess.run(
        [sys.executable, "-c", ONE_PASS, str(run.id)],
        cwd=ROOT,
        env=site_env(LIMITED),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "usage unknown" not in repeated.stderr
    again = get_run(run.id)
    assert (again.status, again.error) == ("failed", run.error)
    assert (again.epoch, again.next_journal) == (run.epoch, run.next_journal)


def test_wait_of_a_body_returns_to_the_caller_when_due(
    new_worker: Any, start: Any, tmp_path: Path
) -> None:
    """Situation 6, scenario 80: the pause is not repeated."""
    run = start(WAITING)
    with new_worker(WAITING):
        run = wait_for(run, "waiting", "completed", "failed")
        assert run.status == "waiting"
        assert get_state("t").next_nodes == ["finish"]
        assert len(calls(tmp_path)) == 1
        past = timedelta(hours=2)
        Wait.objects.update(due_at=F("due_at") - past)
        Run.objects.update(wake_at=F("wake_at") - past)
        run = wait_for(run, "completed", "failed")
    assert run.status == "completed"
    assert [step for _, step in calls(tmp_path)] == [0, 1]
    assert calls(tmp_path)[-1] == ("finish", 1)
