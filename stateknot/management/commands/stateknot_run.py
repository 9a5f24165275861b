"""`manage.py stateknot_run`: start a run of a graph.

Parses and prints; see `stateknot/management/driving.py` for what the commands share.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from uuid_utils.compat import uuid7

from stateknot.management.commands._arguments import show_examples
from stateknot.management.driving import DrivingCommand, command_actor, refusing
from stateknot.management.exit_codes import EXPLAINED
from stateknot.management.json_argument import read_object
from stateknot.registry import get_graph
from stateknot.services import start_run
from stateknot.services.busy import ON_BUSY
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = f"""\
examples:
  manage.py stateknot_run shop.order '{{"order_id": 7}}' --thread order-7 --wait
  manage.py stateknot_run shop.order @order.json --here --json
  echo '{{"order_id": 7}}' | manage.py stateknot_run shop.order -

{EXPLAINED}"""


class Command(DrivingCommand):
    """Start a run, and tell how it stands."""

    help = "Start a run of a graph, on the workers or (--here) in this process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("graph", help="The graph's id.")
        parser.add_argument(
            "state", help="The first state: a JSON object, - for stdin, or @file."
        )
        parser.add_argument(
            "--thread", metavar="ID", help="The thread to run on; a new one without."
        )
        parser.add_argument(
            "--on-busy",
            choices=ON_BUSY,
            default=ON_BUSY[0],
            help="On a thread that another run holds: refuse, begin behind it, or "
            "cancel it first. Not with --here, which refuses.",
        )
        self.add_driving_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Start."""
        state = read_object(options["state"], "the state")
        with refusing():
            if options["here"]:
                self._run_here(state, options)
            else:
                run = start_run(
                    options["graph"],
                    state,
                    thread_id=options["thread"],
                    on_busy=options["on_busy"],
                    actor=command_actor(),
                )
                self.hand_over(run, options)

    def _run_here(self, state: dict[str, Any], options: dict[str, Any]) -> None:
        thread_id = options["thread"] or str(uuid7())
        graph = get_graph(options["graph"]).with_checkpointer(DjangoCheckpointer())
        call = partial(graph.run_with_thread, thread_id, state)
        self.drive_here(thread_id, call, options)
