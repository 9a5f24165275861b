"""What the processes of a cluster report about themselves, and what follows from it.

Owns the form of a beat, its way through a pipe, and the verdict whether a cluster
hangs. Must not know Django or django-q2, because both the supervisor and the inside of
a cluster import it. Read `cluster.py` next for who beats when.

Note [Heartbeat of a cluster]: django-q2's known hang leaves everything alive. An idle
worker waits inside `Queue.get` and holds the queue's lock; killed there, it never
gives the lock back, and its successor waits for it in vain, while sentinel, pusher and
monitor go on. django-q2's own status record (`Stat`) does not help: the sentinel writes
it, so it stays fresh, and with the default cache it never leaves its process. Runs
that nobody claims are no proof either: they may belong to a revision that this code
does not have, and claiming them may be another machine's turn.
So the cluster examines itself. Its pusher puts a probe, an empty task that never
touches the broker or the database, into the local queue every few seconds; it takes
the whole way from pusher to worker to monitor. A cluster that has a free worker and
brings nothing all the way round for `hang_after` seconds hangs, wherever the lock was
lost. While every worker is busy nothing can be said, and nothing is. The sentinel is
watched apart: it touches its status in each round of its guard loop.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Beat(StrEnum):
    """Something a process of the cluster has just done."""

    GUARDED = "guarded"
    SPAWNED = "spawned"
    STARTED = "started"
    FINISHED = "finished"
    ANSWERED = "answered"


class PulseWriter:
    """The cluster's end of the pipe, shared by all of its processes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def report(self, beat: Beat) -> None:
        """Write one beat of the calling process; never block, never fail.

        A record is far below PIPE_BUF, so records of several processes do not mix. A
        full pipe (a stopped supervisor) or a closed one (a dead one) loses the beat:
        work goes before news of work.
        """
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._fd, f"{beat} {os.getpid()}\n".encode())


@dataclass(slots=True, kw_only=True)
class Pulse:
    """All that is known of one cluster; times are seconds of one monotonic clock."""

    started_at: float
    guarded_at: float = field(init=False)
    answered_at: float = field(init=False)
    crowded_at: float = field(init=False)
    is_ready: bool = False
    busy: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.guarded_at = self.answered_at = self.crowded_at = self.started_at

    def observe(self, beat: Beat, pid: int, now: float) -> None:
        """Take one beat of process `pid` into account."""
        match beat:
            case Beat.GUARDED:
                self.guarded_at = now
            case Beat.ANSWERED:
                self.answered_at, self.is_ready = now, True
            case Beat.SPAWNED | Beat.FINISHED:
                self.busy[pid] = False
            case Beat.STARTED:
                self.busy[pid] = True

    def forget_dead_workers(self) -> None:
        """Drop workers that are gone, so that none of them counts as busy."""
        self.busy = {pid: busy for pid, busy in self.busy.items() if is_alive(pid)}

    def diagnose(self, now: float, *, hang_after: float, grace: float) -> str | None:
        """Tell why the cluster counts as hung, None while it does not.

        A hung cluster may still have a worker that finishes its task: such a one
        gets `grace` seconds more before the verdict.
        """
        if self.busy and all(self.busy.values()):
            self.crowded_at = now
        patience = hang_after + (grace if any(self.busy.values()) else 0)
        if now - self.guarded_at > patience:
            return f"its sentinel has not looked around for {patience:g} s"
        if now - max(self.answered_at, self.crowded_at) > patience:
            return f"it has a free worker and finished nothing for {patience:g} s"
        return None


class PulseReader:
    """The supervisor's end of the pipe; `writer_fd` is for the child to inherit."""

    def __init__(self) -> None:
        self._fd, self.writer_fd = os.pipe()
        os.set_blocking(self._fd, False)
        os.set_blocking(self.writer_fd, False)
        self._rest = b""

    def feed(self, pulse: Pulse, now: float) -> None:
        """Pass on to `pulse` every beat that has arrived since the last call."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._fd, 65536):
                *records, self._rest = (self._rest + chunk).split(b"\n")
                for record in records:
                    beat, pid = record.decode().split()
                    pulse.observe(Beat(beat), int(pid), now)

    def close_writer(self) -> None:
        """Close this process's copy of the writing end, once the child has its own."""
        os.close(self.writer_fd)

    def close(self) -> None:
        """Close the reading end."""
        os.close(self._fd)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that is dead but not reaped does not.

    Without `/proc` an unreaped process counts as alive.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists() and _answers(pid)
    except ProcessLookupError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
