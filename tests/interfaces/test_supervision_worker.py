"""When a worker restarts its cluster, how long it waits, what its command takes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

import pytest

from stateknot.management.commands._arguments import count, port, seconds
from stateknot.management.supervision.sweeper import Sweeper
from stateknot.management.supervision.worker import (
    MOST_FAILED_STARTS,
    RestartPolicy,
    WorkerOptions,
    WorkerSupervisor,
)

DEADLINE_SECONDS = 20.0

# A cluster that becomes ready, and guards once, and then ignores every signal.
SILENT = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(int(sys.argv[1].partition("=")[2]), b"guarded 1\\nanswered 1\\n")
while True:
    signal.pause()
"""


class Supervision:
    """A supervisor of a small program, and what it said."""

    def __init__(
        self, source: str, *, hang_after: float = 60, grace: float = 1
    ) -> None:
        self.said: list[str] = []
        self.ready = 0
        self._supervisor = WorkerSupervisor(
            [sys.executable, "-c", source],
            WorkerOptions(grace=grace, hang_after=hang_after),
            restarts=RestartPolicy(first_pause=0.01),
            say=self.said.append,
            on_ready=self._note_ready,
        )
        self.stop_after = 1

    def run(self) -> bool:
        """Supervise until it gives up or was ready `stop_after` times."""
        return self._supervisor.run()

    def count(self, text: str) -> int:
        """Return how many lines contain `text`."""
        return sum(text in line for line in self.said)

    def _note_ready(self) -> None:
        self.ready += 1
        if self.ready == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)


def test_worker_whose_cluster_never_starts_gives_up() -> None:
    supervision = Supervision("raise SystemExit(7)")
    assert not supervision.run()
    assert supervision.count("exit code 7") == MOST_FAILED_STARTS
    assert supervision.ready == 0


def test_cluster_that_falls_silent_is_replaced_by_another() -> None:
    supervision = Supervision(SILENT, hang_after=1, grace=0.2)
    supervision.stop_after = 2
    supervision.run()
    assert supervision.count("cluster replaced: its sentinel") == 1
    assert supervision.count("cluster started") == 2


def test_cluster_that_does_not_drain_makes_a_dirty_end() -> None:
    supervision = Supervision(SILENT, grace=0.2)
    assert not supervision.run()
    assert supervision.said[-1] == "cluster killed before it had drained"


def test_cluster_that_drains_makes_a_clean_end() -> None:
    polite = SILENT.replace("signal.SIG_IGN", "lambda *_: sys.exit(0)")
    supervision = Supervision(polite, grace=DEADLINE_SECONDS)
    assert supervision.run()
    assert supervision.said[-1] == "drained"


def test_pause_doubles_up_to_its_limit() -> None:
    policy = RestartPolicy()
    pauses = [policy.next_pause(was_ready=True, lived=2) for _ in range(7)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_pause_is_short_again_after_a_long_life() -> None:
    policy = RestartPolicy()
    for _ in range(4):
        policy.next_pause(was_ready=True, lived=2)
    assert policy.next_pause(was_ready=True, lived=600) == 1


def test_worker_gives_up_after_starts_that_all_failed() -> None:
    policy = RestartPolicy()
    for _ in range(MOST_FAILED_STARTS - 1):
        policy.next_pause(was_ready=False, lived=1)
    assert not policy.is_exhausted
    policy.next_pause(was_ready=False, lived=1)
    assert policy.is_exhausted


def test_ready_cluster_clears_the_failed_starts() -> None:
    policy = RestartPolicy()
    for was_ready in [False] * (MOST_FAILED_STARTS - 1) + [True, False]:
        policy.next_pause(was_ready=was_ready, lived=1)
    assert policy.failed_starts == 1


@pytest.mark.parametrize(("hang_after", "every"), [(30, 5), (4, 1)])
def test_several_probes_fit_into_the_time_to_a_verdict(
    hang_after: float, every: float
) -> None:
    options = WorkerOptions(grace=1, hang_after=hang_after)
    assert options.probe_every == every


def test_failing_sweep_is_logged_and_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    passes, repeated = [0], threading.Event()

    def sweep() -> None:
        passes[0] += 1
        if passes[0] < 3:
            raise ConnectionError("the database is away")
        repeated.set()

    sweeper = Sweeper(sweep, every=0.01)
    sweeper.start()
    assert repeated.wait(DEADLINE_SECONDS)
    sweeper.close()
    assert caplog.text.count("The sweep failed") == 2


def test_closed_sweeper_begins_no_further_pass() -> None:
    began = threading.Event()
    sweeper = Sweeper(began.set, every=0.01)
    sweeper.start()
    assert began.wait(DEADLINE_SECONDS)
    sweeper.close()
    began.clear()
    assert not began.wait(0.1)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_duration_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="seconds above 0"):
        seconds(text)


@pytest.mark.parametrize("text", ["-1", "1.5", "²", "many"])
def test_count_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="whole number"):
        count(text)


@pytest.mark.parametrize("text", ["0", "65536", "http"])
def test_port_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        port(text)
