"""`manage.py stateknot_move`: move a run to another revision of its graph.

Parses and prints; what a move does is decided in `stateknot/runtime/moving.py`.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from stateknot.api.bodies import CURRENT
from stateknot.api.projection import show_plan, show_run
from stateknot.management.commands._arguments import show_examples
from stateknot.management.driving import command_actor
from stateknot.management.exit_codes import EXPLAINED, ExitCode, refusing
from stateknot.management.output import plan_text, to_json
from stateknot.selectors import get_run
from stateknot.services import move_run, plan_move

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from stateknot.runtime.moving import Migrate

EXAMPLES = f"""\
examples:
  manage.py stateknot_move 0198c5a2-... --to current --dry-run
  manage.py stateknot_move 0198c5a2-... --to current --alias approve=sign_off
  manage.py stateknot_move 0198c5a2-... --to sha256:47da... --migrate shop.graphs.add_k

A run that cannot be moved stays where it is, and exit code {ExitCode.CONFLICT:d} says
so, of a dry run too.

{EXPLAINED}"""


class Command(BaseCommand):
    """Say what a move does, then make it."""

    help = "Move a run that stands still to another revision of its graph."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("run", help="The run's id.")
        parser.add_argument(
            "--to",
            required=True,
            metavar="DIGEST",
            help=f"The revision's digest, or {CURRENT}: what new runs begin on here.",
        )
        parser.add_argument(
            "--alias",
            type=_alias,
            action="append",
            default=[],
            metavar="OLD=NEW",
            help="The new name of a node; may be given several times.",
        )
        parser.add_argument(
            "--migrate",
            type=_function,
            metavar="MODULE.FUNCTION",
            help="Makes the new model's values from those that are stored.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say what would happen."
        )
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Plan, tell, move."""
        run_id, is_dry = options["run"], options["dry_run"]
        how: dict[str, Any] = {
            "aliases": dict(options["alias"]),
            "migrate": options["migrate"],
        }
        digest = None if options["to"] == CURRENT else options["to"]
        with refusing():
            plan = plan_move(run_id, digest, **how)
            shown = show_plan(plan)
            if not options["json"]:
                self.stdout.write(plan_text(shown))
            can_move = not plan.problems and not is_dry
            if can_move:
                move_run(run_id, plan.to_digest, **how, actor=command_actor())
            is_moved = can_move and plan.from_digest != plan.to_digest
            if options["json"]:
                run = show_run(get_run(run_id))
                told = {
                    "is_moved": is_moved,
                    "plan": shown.model_dump(mode="json"),
                    "run": run.model_dump(mode="json"),
                }
                self.stdout.write(to_json(told))
            elif is_moved:
                self.stdout.write("moved")
        if plan.problems:
            raise SystemExit(ExitCode.CONFLICT)


def _alias(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not (separator and old and new):
        raise ArgumentTypeError(f"{text!r} is not OLD=NEW")
    return old, new


def _function(path: str) -> Migrate:
    try:
        found: Migrate = import_string(path)
    except ImportError as error:
        raise ArgumentTypeError(str(error)) from error
    if not callable(found):
        raise ArgumentTypeError(f"{path} is not a function")
    return found
