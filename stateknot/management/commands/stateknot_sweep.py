"""`manage.py stateknot_sweep`: one recovery pass, by hand or from cron.

Parses and prints; the pass stands in `stateknot/services/sweeping.py`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from stateknot.management.commands._arguments import show_examples
from stateknot.services.sweeping import SweepPass

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = """\
example:
  manage.py stateknot_sweep --json

Running it at any time, twice at once or beside a worker does no harm.

exit codes:
  0  the pass was made, whether or not it found anything
  1  the pass failed (the database is away, say) or could not look at something
"""


class Command(BaseCommand):
    """Make one pass and print what it woke."""

    help = "Wake runs that nobody works on, and start what the schedules have due."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep once."""
        report = SweepPass()()
        found = {
            "woken": report.swept.woken,
            "run_ids": list(report.swept.run_ids),
            "started": list(report.ticked.run_ids),
            "failed": list(report.failed),
        }
        self.stdout.write(json.dumps(found) if options["json"] else _describe(found))
        if report.failed:
            sys.exit(1)


def _describe(found: dict[str, Any]) -> str:
    woken = [f"woke {run_id}" for run_id in found["run_ids"]]
    started = [f"started {run_id}" for run_id in found["started"]]
    failed = [f"could not look at {name}, see the log" for name in found["failed"]]
    return "\n".join([*woken, *started, *failed, f"{found['woken']} woken"])
