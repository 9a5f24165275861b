"""`manage.py stateknot_sweep`: one recovery pass, by hand or from cron.

Parses and prints; the pass stands in `stateknot/runtime/recovery.py`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from stateknot.management.commands._arguments import show_examples
from stateknot.runtime.recovery import sweep

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = """\
example:
  manage.py stateknot_sweep --json

Running it at any time, twice at once or beside a worker does no harm.

exit codes:
  0  the pass was made, whether or not it found anything
  1  the pass failed (the database is away, say)
"""


class Command(BaseCommand):
    """Make one pass and print what it woke."""

    help = "Wake every run that nobody works on: lost wake-ups, dead workers, timers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep once."""
        found = dataclasses.asdict(sweep())
        if options["json"]:
            self.stdout.write(json.dumps(found, default=str))
            return
        for name, value in found.items():
            self.stdout.write(f"{name.replace('_', ' ')}: {value}")
