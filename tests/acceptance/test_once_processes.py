"""What each kind of node guarantees when its process is killed (decision 15).

Real workers on the session's database get SIGKILL at a chosen point of a node, and
others of the same cluster go on. The table is that of `docs/why/once.md`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group

from stateknot import registry
from stateknot.models import NodeAttempt
from stateknot.selectors import get_run, get_state
from stateknot.services import retry_run, start_run
from tests.acceptance.matrix_site.evidence import check_history
from tests.acceptance.once_site.kinds import (
    FIRST_FOLD,
    HANDLER,
    NEXT,
    SECOND_FOLD,
    build_kind,
    graph_id,
)
from tests.acceptance.processes import ROOT, ManageProcess, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from stateknot.models import Run

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
SETTINGS = "tests.acceptance.once_site.settings"
UNKNOWN = "node.outcome_unknown"


@pytest.fixture
def worker(second_process_env: dict[str, str], tmp_path: Path) -> Any:
    """Keep a worker of the site running."""
    with ManageProcess(
        *("stateknot_worker", "--workers=2", "--sweep-every=0.3"),
        env={**second_process_env, "DJANGO_SETTINGS_MODULE": SETTINGS},
        log=tmp_path / "worker.log",
    ) as process:
        process.wait_for("cluster ready")
        yield process


def drive(kind: str, dies: str, folder: Path, monkeypatch: Any) -> Run:
    """Run the kind's graph to its end; its process has died at the point."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_kind(kind))
    (folder / "dies").write_text(dies)
    run = start_run(graph_id(kind), {"folder": str(folder)}, thread_id="t")
    return wait_for_end(run, folder)


def wait_for_end(run: Run, folder: Path) -> Run:
    wait_until(lambda: get_run(run.id).is_terminal, "the end of the run")
    assert not (folder / "dies").exists()
    return get_run(run.id)


def check_end(run: Run, folder: Path) -> None:
    """The run ended well, once, with one history and one key."""
    assert (run.status, run.error) == ("completed", None)
    state = get_state("t")
    assert state is not None
    assert (state.values.paid, state.values.is_over) == ([str(folder)], True)
    assert len(set(calls(folder))) == 1
    check_history(run)


def calls(folder: Path) -> list[str]:
    """The key of each call of the handler."""
    return (folder / "calls").read_text().split()


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("kind", "dies", "called", "rows"),
    [
        ("plain", HANDLER, 2, 2),
        ("plain", FIRST_FOLD, 2, 2),
        ("plain", NEXT, 1, 1),
        ("transactional", HANDLER, 2, 1),
        ("transactional", FIRST_FOLD, 2, 1),
        ("transactional", SECOND_FOLD, 1, 1),
        ("transactional", NEXT, 1, 1),
        ("at_most_once", FIRST_FOLD, 1, 1),
        ("at_most_once", NEXT, 1, 1),
    ],
)
def test_killed_node_acts_as_often_as_its_kind_says(
    kind: str, dies: str, called: int, rows: int, tmp_path: Path, monkeypatch: Any
) -> None:
    run = drive(kind, dies, tmp_path, monkeypatch)
    check_end(run, tmp_path)
    assert (len(calls(tmp_path)), Group.objects.count()) == (called, rows)


@pytest.mark.usefixtures("worker")
def test_at_most_once_node_that_was_killed_waits_for_an_operator(
    tmp_path: Path, monkeypatch: Any
) -> None:
    run = drive("at_most_once", HANDLER, tmp_path, monkeypatch)
    assert (run.status, run.error_code, run.failed_node) == ("failed", UNKNOWN, "pay")
    assert (len(calls(tmp_path)), Group.objects.count()) == (1, 1)
    attempts = NodeAttempt.objects.filter(run=run)
    assert [attempt.status for attempt in attempts] == ["lost"]
    retry_run("t", rerun_unknown=True)
    run = wait_for_end(run, tmp_path)
    assert run.status == "completed"
    # The operator's own risk: the other system can still tell by the key.
    assert len(calls(tmp_path)) == 2


@pytest.mark.only_on("sqlite")
def test_wq_13_transaction_is_that_of_the_engines_database(tmp_path: Path) -> None:
    """WQ-13: with two databases, rows and result stand under one alias."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.once_site.two_databases"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": f"{SETTINGS}_two_databases",
            "TWO_DATABASES": str(tmp_path),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(ran.stdout) == {
        "default": {"rows": ["try 1", "try 2"], "runs": 0, "inside": False},
        "engine": {"rows": ["try 2"], "runs": 1, "inside": True},
    }
