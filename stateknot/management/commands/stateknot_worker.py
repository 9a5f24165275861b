"""`manage.py stateknot_worker`: run one supervised django-q2 cluster, and sweep.

Parses and wires; the supervisor stands in `stateknot/management/supervision/worker.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from stateknot.management.commands._arguments import (
    add_worker_options,
    seconds,
    show_examples,
)
from stateknot.management.supervision.sweeper import Sweeper
from stateknot.management.supervision.worker import (
    RestartPolicy,
    WorkerOptions,
    WorkerSupervisor,
    cluster_command,
)
from stateknot.queue_checks import check_worker_pool
from stateknot.services.sweeping import SweepPass

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = """\
example:
  manage.py stateknot_worker --workers 4 --grace 60

SIGTERM or Ctrl-C drains: running nodes may finish within the grace period. A second
one ends at once; what it cuts off is taken up again by another worker. Signal this
process only: under systemd, KillMode=mixed.

exit codes:
  0  ended on demand, everything drained
  1  killed before it had drained, no cluster could be started, or the settings
     cannot work
  2  wrong arguments
"""


class Command(BaseCommand):
    """Supervise a cluster until a stop signal comes."""

    help = "Run a worker: a supervised django-q2 cluster and the recovery sweep."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        show_examples(parser, EXAMPLES)
        add_worker_options(parser)
        parser.add_argument(
            "--hang-after",
            type=seconds,
            default=30.0,
            help="Seconds without a sign of life before a restart (default 30).",
        )
        parser.add_argument(
            "--sweep-every",
            type=seconds,
            default=10.0,
            help="Seconds between two recovery sweeps (default 10).",
        )
        parser.add_argument(
            "--ready-fd",
            type=int,
            help="Write a line to this file descriptor when the worker is ready.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; the exit code says how it ended."""
        refused = check_worker_pool()
        if refused:
            raise CommandError(f"{refused[0].msg} {refused[0].hint}")
        chosen = WorkerOptions(
            grace=options["grace"],
            hang_after=options["hang_after"],
            workers=options["workers"],
        )
        supervisor = WorkerSupervisor(
            cluster_command(chosen),
            chosen,
            restarts=RestartPolicy(),
            say=self._say,
            on_ready=partial(self._tell_ready, options["ready_fd"]),
        )
        sweeper = Sweeper(SweepPass(), every=options["sweep_every"])
        sweeper.start()
        with contextlib.closing(sweeper):
            clean = supervisor.run()
        if not clean:
            sys.exit(1)

    def _say(self, text: str) -> None:
        self.stdout.write(f"worker: {text}")
        self.stdout.flush()

    def _tell_ready(self, ready_fd: int | None) -> None:
        if ready_fd is not None:
            os.write(ready_fd, b"ready\n")
