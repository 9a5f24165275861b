"""The inside of a supervised django-q2 cluster: the program that the supervisor starts.

Owns what is added to django-q2's cluster: probes and beats, and tethers between its
processes. See Note [Heartbeat of a cluster] and see Note [Tethers]. Must not know runs
or graphs: tasks reach the engine through the queue alone. Read `stateknot/tasks.py`
next for what a task does.
"""

from __future__ import annotations

import argparse
import logging
import signal
import time
import uuid
from functools import cached_property, partial
from multiprocessing.sharedctypes import RawValue
from typing import TYPE_CHECKING, Any

import django

from stateknot.management.supervision.probe import PROBE_NAME, answer
from stateknot.management.supervision.pulse import Beat, PulseWriter
from stateknot.management.supervision.tether import tether_forks
from stateknot.runtime.draining import answer_with, is_draining

if TYPE_CHECKING:
    from types import FrameType

# The leader forks its sentinel, and that pusher, monitor and workers: a killed leader
# takes its sentinel with it, a killed sentinel its workers.
GENERATIONS = 2


class ProbingBroker:
    """The configured broker, which hands out a probe of its own now and then.

    Made before django-q2 forks and used on both sides: the pusher calls `dequeue`, the
    sentinel calls `set_stat` in each round of its guard loop. The broker behind it is
    opened at first use, so that no connection crosses a fork.
    """

    def __init__(self, pulse: PulseWriter, *, every: float) -> None:
        self._pulse = pulse
        self._every = every
        self._due_at = time.monotonic()

    @cached_property
    def _broker(self) -> Any:
        from django_q.brokers import get_broker

        return get_broker()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def dequeue(self) -> Any:
        """Return (ack id, message) pairs; a probe has no ack id, it is not stored.

        A draining cluster takes nothing: what its workers give back is not for it.
        """
        if is_draining():
            return None
        now = time.monotonic()
        if now < self._due_at:
            return self._broker.dequeue()
        self._due_at = now + self._every
        return [(None, _probe())]

    def set_stat(self, key: str, value: str, timeout: int) -> Any:
        """Save the sentinel's status, which tells that it guards."""
        self._pulse.report(Beat.GUARDED)
        return self._broker.set_stat(key, value, timeout)


def _probe() -> str:
    from django.utils import timezone
    from django_q.signing import SignedPackage

    task = {
        "id": uuid.uuid4().hex,
        "name": PROBE_NAME,
        "func": f"{answer.__module__}.{answer.__name__}",
        "args": (),
        "kwargs": {},
        "started": timezone.now(),
        "save": False,
    }
    return str(SignedPackage.dumps(task))


def report_tasks(pulse: PulseWriter) -> None:
    """Report what workers and monitor do, through django-q2's signals."""
    from django_q import signals

    for sent, beat in (
        (signals.post_spawn, Beat.SPAWNED),
        (signals.pre_execute, Beat.STARTED),
        (signals.post_execute_in_worker, Beat.FINISHED),
        (signals.post_execute, Beat.ANSWERED),
    ):
        sent.connect(partial(_report, pulse, beat), weak=False)


def _report(pulse: PulseWriter, beat: Beat, **_: object) -> None:
    pulse.report(beat)


def hide_probes() -> None:
    """Keep the coming and going of probes out of django-q2's log."""
    from django_q.conf import logger

    logger.addFilter(_is_no_probe)


def _is_no_probe(record: logging.LogRecord) -> bool:
    return PROBE_NAME not in record.getMessage()


def drain_on_signals(cluster: Any) -> None:
    """Let every process of `cluster` know at once that it was told to stop.

    A plain byte of shared memory, without a lock: a killed process would keep it.
    """
    told = RawValue("b", 0)
    answer_with(lambda: bool(told.value))

    def stop(number: int, frame: FrameType | None) -> None:
        told.value = 1
        cluster.sig_handler(number, frame)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def main() -> None:
    """Run one cluster until it is told to stop; the supervisor's counterpart."""
    options = _parse()
    django.setup()
    from django_q.cluster import Cluster
    from django_q.conf import Conf

    if options.workers:
        Conf.WORKERS = options.workers
    pulse = PulseWriter(options.pulse_fd)
    tether_forks(GENERATIONS)
    report_tasks(pulse)
    hide_probes()
    cluster = Cluster(broker=ProbingBroker(pulse, every=options.probe_every))
    drain_on_signals(cluster)
    cluster.start()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The cluster of a stateknot_worker.")
    parser.add_argument("--pulse-fd", type=int, required=True)
    parser.add_argument("--probe-every", type=float, required=True)
    parser.add_argument("--workers", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
