"""`manage.py stateknot_cancel`: end a run before it comes to its own end.

Parses and prints; see `stateknot/services/cancelling.py` for what a cancel is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from stateknot.api.projection import show_run
from stateknot.management.commands._arguments import seconds, show_examples
from stateknot.management.driving import POLL_SECONDS, command_actor
from stateknot.management.exit_codes import EXPLAINED, refusing
from stateknot.management.output import sentence, to_json
from stateknot.selectors import get_run
from stateknot.services import cancel_run

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from stateknot.models import Run

EXAMPLES = f"""\
examples:
  manage.py stateknot_cancel 0198c5a2-... --reason "ordered twice"
  manage.py stateknot_cancel 0198c5a2-... --reason "deploy" --wait --timeout 60

Without --wait the exit code is 0 once the request is stored: the run ends with the
superstep that its worker is in, at the latest with the first sweep after its lease.

{EXPLAINED}"""


class Command(BaseCommand):
    """Cancel, and tell how the run stands."""

    help = "End a run as cancelled, with its child runs and open questions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("run", help="The run's id.")
        parser.add_argument(
            "--reason", default="", help="Why; it is kept in the journal."
        )
        parser.add_argument(
            "--wait", action="store_true", help="Wait until the run has ended."
        )
        parser.add_argument(
            "--timeout",
            type=seconds,
            metavar="SECONDS",
            help="With --wait: end with exit code 1 when it takes longer.",
        )
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Cancel."""
        with refusing():
            run = get_run(options["run"])
            run = cancel_run(run.id, reason=options["reason"], actor=command_actor())
        if options["wait"]:
            self._wait(run, options["timeout"])
        shown = show_run(get_run(run.id))
        is_json = options["json"]
        told = to_json(shown.model_dump(mode="json")) if is_json else sentence(shown, 0)
        self.stdout.write(told)

    def _wait(self, run: Run, limit: float | None) -> None:
        end = None if limit is None else time.monotonic() + limit
        while not run.is_terminal:
            if end is not None and time.monotonic() >= end:
                raise CommandError(
                    f"run {run.id} was asked to stop and is {run.status} after "
                    f"{limit:g} s; it ends without this command. Does a sweep run?"
                )
            time.sleep(POLL_SECONDS)
            run.refresh_from_db(fields=["status"])
