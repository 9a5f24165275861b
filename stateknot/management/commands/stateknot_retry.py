"""`manage.py stateknot_retry`: run again what failed on a thread.

Parses and prints; see `stateknot/management/driving.py` for what the commands share.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stateknot.management.commands._arguments import show_examples
from stateknot.management.driving import (
    DrivingCommand,
    command_actor,
    pinned_graph,
    refusing,
    superstep_limit,
)
from stateknot.management.exit_codes import EXPLAINED
from stateknot.selectors.access import get_current_run
from stateknot.services import retry_run

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = f"""\
examples:
  manage.py stateknot_retry order-7 --wait --timeout 60
  manage.py stateknot_retry order-7 --here --step-limit 200

{EXPLAINED}"""


class Command(DrivingCommand):
    """Retry, and tell how the run stands."""

    help = "Run again what failed on a thread, or now what waits for its time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("thread", help="The thread's id.")
        parser.add_argument(
            "--step-limit",
            type=superstep_limit,
            metavar="N",
            help="Raise the run's limit of supersteps to N.",
        )
        parser.add_argument(
            "--rerun-unknown",
            action="store_true",
            help="Run at-most-once nodes again of which nobody can tell whether they "
            "acted. Find that out first.",
        )
        self.add_driving_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Retry."""
        thread_id = options["thread"]
        how = {name: options[name] for name in ("step_limit", "rerun_unknown")}
        with refusing():
            if options["here"]:
                graph = pinned_graph(thread_id)
                call = partial(graph.retry, thread_id, **how)
                self.drive_here(thread_id, call, options)
                return
            get_current_run(None, thread_id)
            run = retry_run(thread_id, **how, actor=command_actor())
            self.hand_over(run, options)
