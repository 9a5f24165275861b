"""The verdict over a cluster: values and processes in, a reason or None out."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from stateknot.management.supervision.pulse import (
    Beat,
    Pulse,
    PulseReader,
    PulseWriter,
    is_alive,
)

LIMITS = {"hang_after": 20.0, "grace": 30.0}


def beating(*beats: tuple[Beat, int, float]) -> Pulse:
    """Return the pulse of a cluster that started at 0 and beat like this."""
    pulse = Pulse(started_at=0.0)
    for beat, pid, now in beats:
        pulse.observe(beat, pid, now)
    return pulse


@pytest.mark.parametrize("now", [0.0, 20.0])
def test_cluster_that_just_started_gets_time(now: float) -> None:
    assert beating().diagnose(now, **LIMITS) is None


def test_cluster_that_answers_nothing_hangs() -> None:
    pulse = beating((Beat.SPAWNED, 7, 1.0), (Beat.GUARDED, 5, 20.5))
    assert "finished nothing for 20 s" in str(pulse.diagnose(20.5, **LIMITS))


def test_answered_task_is_a_sign_of_life() -> None:
    pulse = beating((Beat.ANSWERED, 8, 15.0), (Beat.GUARDED, 5, 34.0))
    assert pulse.diagnose(34.0, **LIMITS) is None


def test_silent_sentinel_hangs_although_tasks_are_answered() -> None:
    pulse = beating((Beat.GUARDED, 5, 1.0), (Beat.ANSWERED, 8, 21.5))
    assert "sentinel" in str(pulse.diagnose(21.5, **LIMITS))


def test_cluster_with_every_worker_busy_cannot_be_judged() -> None:
    """A node may take longer than a cluster may be silent."""
    pulse = beating((Beat.STARTED, 7, 1.0), (Beat.GUARDED, 5, 200.0))
    assert pulse.diagnose(200.0, **LIMITS) is None


def test_cluster_whose_worker_becomes_free_gets_time_from_then_on() -> None:
    pulse = beating((Beat.STARTED, 7, 1.0), (Beat.GUARDED, 5, 100.0))
    assert pulse.diagnose(100.0, **LIMITS) is None
    pulse.observe(Beat.FINISHED, 7, 100.1)
    pulse.observe(Beat.GUARDED, 5, 121.0)
    assert pulse.diagnose(119.0, **LIMITS) is None
    assert pulse.diagnose(121.0, **LIMITS) is not None


def test_hung_cluster_with_one_busy_worker_gets_the_grace_period() -> None:
    pulse = beating(
        (Beat.SPAWNED, 7, 1.0), (Beat.STARTED, 8, 1.0), (Beat.GUARDED, 5, 51.0)
    )
    assert pulse.diagnose(49.0, **LIMITS) is None
    assert "for 50 s" in str(pulse.diagnose(51.0, **LIMITS))


def test_worker_killed_while_busy_is_not_busy_any_more() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    pulse = beating((Beat.STARTED, child.pid, 1.0), (Beat.STARTED, os.getpid(), 1.0))
    child.wait()
    pulse.forget_dead_workers()
    assert pulse.busy == {os.getpid(): True}


def test_unreaped_process_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid)
    child.wait()


def test_cluster_is_ready_with_its_first_answer() -> None:
    pulse = beating((Beat.GUARDED, 5, 1.0))
    assert not pulse.is_ready
    pulse.observe(Beat.ANSWERED, 8, 2.0)
    assert pulse.is_ready


def test_beats_travel_through_the_pipe() -> None:
    reader, pulse = PulseReader(), Pulse(started_at=0.0)
    writer = PulseWriter(reader.writer_fd)
    writer.report(Beat.STARTED)
    writer.report(Beat.ANSWERED)
    reader.feed(pulse, 3.0)
    assert (pulse.busy, pulse.answered_at) == ({os.getpid(): True}, 3.0)
    reader.close_writer()
    reader.close()


def test_beat_cut_in_two_by_a_read_is_put_together() -> None:
    reader, pulse = PulseReader(), Pulse(started_at=0.0)
    os.write(reader.writer_fd, b"star")
    reader.feed(pulse, 1.0)
    os.write(reader.writer_fd, b"ted 7\n")
    reader.feed(pulse, 2.0)
    assert pulse.busy == {7: True}
    reader.close_writer()
    reader.close()


def test_full_pipe_does_not_hold_up_the_worker() -> None:
    reader = PulseReader()
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(reader.writer_fd, b"guarded 5\n" * 100)
    PulseWriter(reader.writer_fd).report(Beat.GUARDED)
    reader.close_writer()
    reader.close()


def test_dead_supervisor_does_not_fail_the_worker() -> None:
    reader = PulseReader()
    reader.close()
    PulseWriter(reader.writer_fd).report(Beat.GUARDED)
    reader.close_writer()
