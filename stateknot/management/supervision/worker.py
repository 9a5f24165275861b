"""The supervisor of one django-q2 cluster: start, watch, restart, drain.

Owns the decisions: when a cluster counts as dead or hung, how long to wait before the
next start, when to give up. Must not know runs or rows; the sweep is a function that
the command passes in. Read `pulse.py` next for how a hung cluster is recognised.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stateknot.management.supervision.child import Child, Program, drain
from stateknot.management.supervision.inbox import SignalInbox
from stateknot.management.supervision.pulse import Pulse, PulseReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.25
PROBE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# So many clusters in a row that never became ready: the settings are wrong, and a
# script (or a person) learns more from an exit code than from an endless loop.
MOST_FAILED_STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What the operator chose; durations are seconds."""

    grace: float
    hang_after: float
    workers: int = 0

    @property
    def probe_every(self) -> float:
        """Pause between two probes: several must fit into `hang_after`."""
        return min(PROBE_SECONDS, self.hang_after / 4)


class RestartPolicy:
    """How long to wait before the next start, and when there is none."""

    def __init__(self, *, first_pause: float = FIRST_PAUSE_SECONDS) -> None:
        self.failed_starts = 0
        self._first_pause = self._pause = first_pause

    @property
    def is_exhausted(self) -> bool:
        """Whether so many starts have failed in a row that another one is idle."""
        return self.failed_starts >= MOST_FAILED_STARTS

    def next_pause(self, *, was_ready: bool, lived: float) -> float:
        """Note the end of a cluster that `lived` so many seconds; return the pause."""
        self.failed_starts = 0 if was_ready else self.failed_starts + 1
        if was_ready and lived > LONGEST_PAUSE_SECONDS:
            self._pause = self._first_pause
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        return pause


class Cluster:
    """One life of a cluster: its processes and their pulse."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._reader = PulseReader()
        fd = self._reader.writer_fd
        self.child = Child(
            Program(
                name="cluster",
                argv=[*argv, f"--pulse-fd={fd}"],
                on_orphaned=signal.SIGKILL,
                fds=(fd,),
            )
        )
        self._reader.close_writer()
        self.pulse = Pulse(started_at=self.child.started_at)

    def find_fault(self, options: WorkerOptions) -> str | None:
        """Tell why this cluster must be replaced, None while it does its work."""
        if self.child.exit_code is not None:
            return f"its leader ended with exit code {self.child.exit_code}"
        now = time.monotonic()
        self._reader.feed(self.pulse, now)
        self.pulse.forget_dead_workers()
        return self.pulse.diagnose(
            now, hang_after=options.hang_after, grace=options.grace
        )

    def kill(self) -> float:
        """End every process of the cluster at once; return how long it lived."""
        self.child.kill_group()
        self._reader.close()
        return time.monotonic() - self.child.started_at


class WorkerSupervisor:
    """Keeps one cluster running until a stop signal comes.

    `command` starts it and is given the end of a pulse as `--pulse-fd=<number>`.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: WorkerOptions,
        *,
        restarts: RestartPolicy,
        say: Callable[[str], None],
        on_ready: Callable[[], None],
    ) -> None:
        self._command = command
        self._options = options
        self._restarts = restarts
        self._say = say
        self._on_ready = on_ready
        self._cluster: Cluster | None = None
        self._start_at = time.monotonic()
        self._announced: Cluster | None = None

    def run(self) -> bool:
        """Supervise in this process's main thread; whether all ended cleanly.

        Returns after a stop signal, once the cluster is gone, or with False as soon
        as no start is worth another try.
        """
        with SignalInbox() as inbox, contextlib.ExitStack() as cleanup:
            cleanup.callback(self._kill)
            while not inbox.stops:
                if self._restarts.is_exhausted:
                    self._say("giving up: no cluster became ready")
                    return False
                self._step()
                inbox.wait(TICK_SECONDS)
            return self._drain(inbox)

    def _step(self) -> None:
        if self._cluster is None:
            if time.monotonic() >= self._start_at:
                self._cluster = Cluster(self._command)
                self._say(f"cluster started, process {self._cluster.child.pid}")
            return
        fault = self._cluster.find_fault(self._options)
        if fault:
            self._replace(self._cluster, fault)
        elif self._cluster.pulse.is_ready and self._announced is not self._cluster:
            self._announced = self._cluster
            self._say("cluster ready")
            self._on_ready()

    def _replace(self, cluster: Cluster, fault: str) -> None:
        self._cluster = None
        lived = cluster.kill()
        pause = self._restarts.next_pause(was_ready=cluster.pulse.is_ready, lived=lived)
        self._start_at = time.monotonic() + pause
        logger.warning("Cluster %d is replaced: %s", cluster.child.pid, fault)
        self._say(f"cluster replaced: {fault}; the next one starts in {pause:g} s")

    def _drain(self, inbox: SignalInbox) -> bool:
        if self._cluster is None:
            return True
        self._say(f"draining, at most {self._options.grace:g} s")
        clean = drain([self._cluster.child], grace=self._options.grace, inbox=inbox)
        self._say("drained" if clean else "cluster killed before it had drained")
        return clean

    def _kill(self) -> None:
        if self._cluster is not None:
            self._cluster.kill()


def cluster_command(options: WorkerOptions) -> list[str]:
    """Return the command line of a cluster, without the end of its pulse."""
    return [
        sys.executable,
        "-m",
        "stateknot.management.supervision.cluster",
        f"--probe-every={options.probe_every:g}",
        f"--workers={options.workers}",
    ]
