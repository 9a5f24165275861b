"""The acceptance matrix: a walk meets a fault, and everything is there once.

Real clusters on a real database; `matrix_site/evidence.py` says what holds behind each
cell. Nothing here waits for a time, only for what can be seen. Faults that
`test_crash.py` holds in detail stand here again, over all that the walk has.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ

from stateknot import registry
from stateknot.models import Run
from stateknot.runtime.waking import wake
from stateknot.selectors import get_run
from stateknot.services import start_run
from tests.acceptance.cutting_proxy import CommitCutter, CuttingProxy
from tests.acceptance.matrix_site.evidence import check_walk
from tests.acceptance.matrix_site.models import Booking
from tests.acceptance.matrix_site.walk import (
    BOOKED,
    WALK,
    build_walk,
    find_holder,
    read_effects,
)
from tests.acceptance.processes import (
    ROOT,
    ManageProcess,
    start_worker,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., Run]
    NewWorker = Callable[..., ManageProcess]

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
SETTINGS = "tests.acceptance.matrix_site.settings"
THREAD = "walk"


@pytest.fixture
def new_worker(
    bookings: None, second_process_env: dict[str, str], tmp_path: Path
) -> Iterator[NewWorker]:
    """Give what starts a worker of the site; all end with the test."""
    with ExitStack() as stack:

        def start(settings: str = SETTINGS, **env: str) -> ManageProcess:
            number = len(list(tmp_path.glob("worker-*.log")))
            log = tmp_path / f"worker-{number}.log"
            given = {**second_process_env, **env}
            worker = start_worker(settings, given, log, sweep_every=0.3)
            return stack.enter_context(worker)

        yield start


@pytest.fixture
def bookings(second_process_env: dict[str, str]) -> Iterator[None]:
    """Make the table of the site's own app, which the test's project does not have."""
    with connection.schema_editor() as editor:
        editor.create_model(Booking)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(Booking)


@pytest.fixture
def start(bookings: None, tmp_path: Path, monkeypatch: Any) -> Start:
    """Give what starts the walk, with a fault at a place."""
    monkeypatch.setattr(registry, "_graphs", {})
    registry.register(build_walk())

    def start_walk(place: str = "", fault: str = "") -> Run:
        state = {"folder": str(tmp_path), "place": place, "fault": fault}
        return start_run(WALK, state, thread_id=THREAD)

    return start_walk


def finish(run: Run, folder: Path) -> None:
    """Wait for the end of the walk and check it."""
    wait_until(lambda: get_run(run.id).is_terminal, "the end of the walk")
    check_walk(THREAD, folder)


def wait_for_hold(folder: Path) -> int:
    """Wait until a node holds; return its process."""
    wait_until(lambda: find_holder(folder), "the node that holds")
    return find_holder(folder) or 0


PLACES = pytest.mark.parametrize("place", ["line", "left", "right"])
"""A transactional node alone and beside another one, and a usual one beside it."""


@PLACES
def test_lost_machine(
    place: str, start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """SIGKILL of all its processes in the middle of a node."""
    run = start(place, "hold")
    first = new_worker()
    wait_for_hold(tmp_path)
    first.kill_all()
    (tmp_path / "go").touch()
    new_worker()
    finish(run, tmp_path)
    assert len(read_effects(tmp_path)[place]) == 2


@PLACES
@pytest.mark.parametrize("fault", ["memory", "exit"])
def test_process_of_the_pool_that_ends_in_a_node(
    fault: str, place: str, start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Killed for its memory, or by `sys.exit` in a handler."""
    run = start(place, fault)
    new_worker()
    finish(run, tmp_path)


@PLACES
def test_frozen_process_that_wakes_up_late(
    place: str,
    start: Start,
    new_worker: NewWorker,
    database_kind: str,
    tmp_path: Path,
) -> None:
    """SIGSTOP until its lease has gone to another, then SIGCONT."""
    if place in BOOKED and database_kind == "sqlite":
        place = "right"  # frozen inside a transaction, it holds SQLite's only lock
    run = start(place, "hold")
    new_worker()
    other = new_worker()
    frozen = wait_for_hold(tmp_path)
    os.kill(frozen, signal.SIGSTOP)
    (tmp_path / "go").touch()
    wait_until(lambda: get_run(run.id).is_terminal, "the end of the walk")
    os.kill(frozen, signal.SIGCONT)
    logs = list(tmp_path.glob("worker-*.log"))
    wait_until(
        lambda: any("lease lost" in log.read_text() for log in logs), "the late one"
    )
    assert other.process.poll() is None
    finish(run, tmp_path)


@PLACES
def test_worker_that_is_told_to_end(
    place: str, start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """SIGTERM while a node runs: it ends well, and another worker goes on."""
    run = start(place, "hold")
    first = new_worker()
    wait_for_hold(tmp_path)
    first.survivors()
    first.process.send_signal(signal.SIGTERM)
    first.wait_for("draining")
    (tmp_path / "go").touch()
    assert first.end() == 0
    new_worker()
    finish(run, tmp_path)
    assert len(read_effects(tmp_path)[place]) == 1


@pytest.mark.parametrize("clock", ["ahead", "behind"])
def test_worker_whose_clock_is_wrong(
    clock: str, start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """By an hour: it takes over from a lost one that was right, and waits the timer."""
    run = start("line", "hold")
    first = new_worker()
    wait_for_hold(tmp_path)
    first.kill_all()
    (tmp_path / "go").touch()
    new_worker(f"{SETTINGS}_{clock}")
    finish(run, tmp_path)


def test_two_sweeps_and_a_lost_wake_up(
    start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Two workers sweep all the time; none of them was ever woken for the run."""
    new_worker().wait_for("cluster ready")
    new_worker().wait_for("cluster ready")
    with transaction.atomic():
        run = start()
        OrmQ.objects.all().delete()
        Run.objects.filter(pk=run.pk).update(woken_at=None)
    finish(run, tmp_path)
    assert {len(keys) for keys in read_effects(tmp_path).values()} == {1}


def test_duplicated_wake_ups(
    start: Start, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Four processes get five wake-ups of one run."""
    with transaction.atomic():
        run = start()
        for _ in range(4):
            wake(str(run.id))
    new_worker()
    new_worker()
    finish(run, tmp_path)
    assert {len(keys) for keys in read_effects(tmp_path).values()} == {1}


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("is_heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("place", ["line", "joined", "after"])
def test_connection_cut_in_a_commit(
    place: str,
    is_heard: bool,
    start: Start,
    new_worker: NewWorker,
    second_process_env: dict[str, str],
    tmp_path: Path,
) -> None:
    """The boundary's commit never arrives, or its answer does not.

    That of `line` is the handler's transaction, that of `joined` one statement, and
    that of `after`, which ends the run, several.
    """
    cutter = CommitCutter(is_heard=is_heard)
    with CuttingProxy(second_process_env["DATABASE_URL"], cutter) as proxy:
        new_worker(DATABASE_URL=proxy.url)
        run = start(place, "cut")
        finish(run, tmp_path)
    assert cutter.cuts == 1
    calls = len(read_effects(tmp_path)[place])
    assert calls == (1 if is_heard else 2)


@pytest.mark.only_on("postgres")
def test_connections_cut_in_many_commits(
    start: Start,
    new_worker: NewWorker,
    second_process_env: dict[str, str],
    tmp_path: Path,
) -> None:
    """Those of claims, boundaries, sweeps and the queue alike."""
    cutter = CommitCutter(every=7, at_most=6)
    with CuttingProxy(second_process_env["DATABASE_URL"], cutter) as proxy:
        new_worker(DATABASE_URL=proxy.url)
        finish(start(), tmp_path)
    assert cutter.cuts > 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """Give a PostgreSQL server of this test's own: the session's serves others."""
    from tests.databases import start_server

    server = start_server(tmp_path / "data")
    yield server
    server.cleanup()


@pytest.mark.only_on("postgres")
def test_database_that_is_restarted(
    server: Any,
    new_worker: NewWorker,
    second_process_env: dict[str, str],
    tmp_path: Path,
) -> None:
    """Stopped while a node runs, and started once the node has ended."""
    url = server.get_uri()
    env = {
        **second_process_env,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
    }

    def run(*argv: str) -> None:
        subprocess.run([sys.executable, *argv], cwd=ROOT, env=env, check=True)

    run("manage.py", "migrate", "--run-syncdb", "--verbosity=0")
    state = f'{{"folder": "{tmp_path}", "place": "line", "fault": "hold"}}'
    run("manage.py", "stateknot_run", WALK, state, f"--thread={THREAD}")
    new_worker(DATABASE_URL=url)
    wait_for_hold(tmp_path)
    server.stop()
    (tmp_path / "go").touch()
    server.ensure_postgres_running()
    assert urlsplit(server.get_uri()) == urlsplit(url)
    run("-m", "tests.acceptance.matrix_site.evidence", THREAD, str(tmp_path))
