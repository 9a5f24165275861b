"""`manage.py stateknot_show`: how a thread or a run stands.

Parses and prints; what is told stands in `stateknot/management/output.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import NotFoundError
from stateknot.management.commands._arguments import show_examples
from stateknot.management.driving import DrivingCommand, refusing
from stateknot.management.exit_codes import EXPLAINED
from stateknot.selectors import get_run
from stateknot.selectors.access import get_current_run

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from stateknot.models import Run

EXAMPLES = f"""\
example:
  manage.py stateknot_show order-7
  manage.py stateknot_show order-7 --json | jq .checkpoint.state

{EXPLAINED}"""


class Command(DrivingCommand):
    """Tell how a thread or a run stands."""

    help = "Show a thread or a run: status, state, questions, boundaries, error."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("id", help="A thread's id, or a run's.")
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Show."""
        with refusing():
            self.tell(_find(options["id"]), options)


def _find(name: str) -> Run:
    """The run named, or the current one of the thread named."""
    try:
        return get_current_run(None, name)
    except NotFoundError:
        pass
    try:
        return get_run(name)
    except NotFoundError as error:
        raise NotFoundError(f"no thread or run {name!r}") from error
