"""A worker and its cluster as real processes, killed where it hurts.

Work is sent through the queue as it comes to any cluster: a task of the standard
library that leaves a file behind. See Note [Heartbeat of a cluster] for the hang.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from django.db import connection, transaction
from django_q.models import OrmQ, Task
from django_q.tasks import async_task

from project.audit.state import Audit
from stateknot.management.supervision.probe import PROBE_NAME
from stateknot.models import Run
from stateknot.services import start_run
from tests.acceptance.processes import ManageProcess, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

HANG_SECONDS = 5
READY = "worker: cluster ready"
REPLACED = "worker: cluster replaced"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="tethers and /proc need Linux"
)


@pytest.fixture
def worker(
    second_process_env: dict[str, str], tmp_path: Path
) -> Iterator[ManageProcess]:
    """Return a ready worker with two worker processes."""
    options = [
        "--workers=2",
        f"--hang-after={HANG_SECONDS}",
        "--grace=20",
        "--sweep-every=1",
    ]
    with ManageProcess(
        "stateknot_worker",
        *options,
        env=second_process_env,
        log=tmp_path / "worker.log",
    ) as process:
        process.wait_for(READY)
        process.survivors()
        yield process


def assert_works(folder: Path) -> None:
    """Send a task and wait for what it does."""
    mark = folder / f"mark-{len(list(folder.glob('mark-*')))}"
    async_task("os.mkdir", str(mark))
    wait_until(mark.exists, "the effect of a task")


def assert_replaced(worker: ManageProcess, before: set[int]) -> None:
    """Wait for a second cluster; nothing of the first one lives beside it."""
    worker.wait_for(REPLACED)
    worker.wait_for(READY, times=2)
    assert before.isdisjoint(worker.survivors())


def start_long_task(folder: Path, *, seconds: int) -> Path:
    """Send a task, wait until it runs; return the file that it leaves at its end."""
    path = folder / "task"
    script = f'touch "$0.started" && sleep {seconds} && touch "$0.finished"'
    async_task("subprocess.check_call", ["sh", "-c", script, str(path)])
    wait_until(path.with_suffix(".started").exists, "the start of a task")
    return path.with_suffix(".finished")


def test_worker_takes_tasks(worker: ManageProcess, tmp_path: Path) -> None:
    assert_works(tmp_path)


def test_probes_leave_no_trace(worker: ManageProcess) -> None:
    """A ready cluster has answered one: neither log nor tables tell of it."""
    assert PROBE_NAME not in worker.output
    assert not Task.objects.exists()
    assert not OrmQ.objects.exists()


def test_sigterm_lets_the_running_task_finish(
    worker: ManageProcess, tmp_path: Path
) -> None:
    finished = start_long_task(tmp_path, seconds=2)
    worker.survivors()
    worker.process.send_signal(signal.SIGTERM)
    assert worker.end() == 0
    assert finished.exists()
    assert worker.survivors() == set()


def test_second_sigterm_ends_the_worker_at_once(
    worker: ManageProcess, tmp_path: Path
) -> None:
    finished = start_long_task(tmp_path, seconds=60)
    worker.survivors()
    worker.process.send_signal(signal.SIGTERM)
    worker.wait_for("draining")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.end() == 1
    assert not finished.exists()
    worker.wait_for_no_survivor()


def test_signal_at_the_terminal_reaches_only_the_supervisor(
    worker: ManageProcess,
) -> None:
    """Ctrl-C goes to a process group; the cluster must not be in it."""
    groups = {os.getpgid(pid) for pid in worker.survivors()}
    assert os.getpgid(worker.pid) not in groups


def test_killed_leader_is_replaced(worker: ManageProcess, tmp_path: Path) -> None:
    before = worker.survivors()
    (leader,) = worker.children()
    os.kill(leader, signal.SIGKILL)
    assert_replaced(worker, before)
    assert_works(tmp_path)


def test_killed_sentinel_is_replaced(worker: ManageProcess, tmp_path: Path) -> None:
    before = worker.survivors()
    (leader,) = worker.children()
    os.kill(psutil.Process(leader).children()[0].pid, signal.SIGKILL)
    assert_replaced(worker, before)
    assert_works(tmp_path)


def test_killed_supervisor_leaves_no_process(worker: ManageProcess) -> None:
    assert len(worker.survivors()) >= 6
    worker.process.kill()
    worker.process.wait()
    worker.wait_for_no_survivor()


@pytest.mark.only_on("postgres")
def test_plain_cluster_ends_with_its_killed_leader(
    second_process_env: dict[str, str], tmp_path: Path
) -> None:
    """Without a supervisor too our broker leaves no orphans that go on taking tasks."""
    with ManageProcess(
        "qcluster", env=second_process_env, log=tmp_path / "log"
    ) as cluster:
        cluster.wait_for("pushing tasks at")
        assert len(cluster.survivors()) >= 5
        cluster.process.kill()
        cluster.process.wait()
        cluster.wait_for_no_survivor()


@pytest.mark.only_on("postgres")
def test_wq_10_closed_connections_are_replaced(
    worker: ManageProcess, tmp_path: Path
) -> None:
    """WQ-10: the server closes every connection of an idle worker; work goes on."""
    before = worker.survivors()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.rowcount
    assert_works(tmp_path)
    assert REPLACED not in worker.output
    assert before == worker.survivors()


def test_hang_after_killed_idle_workers_is_recovered(
    worker: ManageProcess, tmp_path: Path
) -> None:
    """The one that read the queue takes its lock along."""
    before = worker.survivors()
    for pid in worker.role("worker"):
        os.kill(pid, signal.SIGKILL)
    assert_replaced(worker, before)
    assert_works(tmp_path)


def test_hang_after_killed_monitor_is_recovered(
    worker: ManageProcess, tmp_path: Path
) -> None:
    """Without it tasks run and no message is ever acknowledged."""
    before = worker.survivors()
    (monitor,) = worker.role("monitor")
    os.kill(monitor, signal.SIGKILL)
    assert_replaced(worker, before)
    assert_works(tmp_path)


def test_stopped_sentinel_is_replaced(worker: ManageProcess, tmp_path: Path) -> None:
    """Tasks run on without it, but nobody guards them."""
    before = worker.survivors()
    (leader,) = worker.children()
    os.kill(psutil.Process(leader).children()[0].pid, signal.SIGSTOP)
    assert_replaced(worker, before)
    assert "its sentinel has not looked around" in worker.output
    assert_works(tmp_path)


def test_killed_pusher_is_no_reason_to_replace_the_cluster(
    worker: ManageProcess, tmp_path: Path
) -> None:
    """django-q2 replaces it by itself."""
    (pusher,) = worker.role("pusher")
    os.kill(pusher, signal.SIGKILL)
    assert_works(tmp_path)
    assert REPLACED not in worker.output


def test_long_task_is_no_hang(worker: ManageProcess, tmp_path: Path) -> None:
    """One worker is busy for longer than the limit, the other one answers."""
    finished = start_long_task(tmp_path, seconds=HANG_SECONDS + 2)
    wait_until(finished.exists, "the end of the task")
    assert REPLACED not in worker.output


def test_run_whose_wake_up_was_lost_is_swept_up(
    worker: ManageProcess, tmp_path: Path
) -> None:
    """The worker sweeps by itself; nothing else tells it of this run."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("absent==1.0\n")
    run = start_unwoken_run(Audit(requirements=str(requirements)))
    wait_until(lambda: _is_completed(run), "the end of the run")


def start_unwoken_run(state: Audit) -> Run:
    """Admit a run and lose its wake-up in the same transaction."""
    with transaction.atomic():
        run = start_run("project.audit", state)
        OrmQ.objects.all().delete()
        Run.objects.filter(pk=run.pk).update(woken_at=None)
    return run


def _is_completed(run: Run) -> bool:
    run.refresh_from_db()
    return run.status == Run.Status.COMPLETED


def test_worker_with_wrong_arguments_exits_with_two(
    second_process_env: dict[str, str], tmp_path: Path
) -> None:
    with ManageProcess(
        "stateknot_worker", "--grace=0", env=second_process_env, log=tmp_path / "log"
    ) as process:
        assert process.end() == 2
        assert "seconds above 0" in process.output
