"""`manage.py stateknot_resume`: answer a question, or go on from a checkpoint.

Parses and prints; see `stateknot/management/driving.py` for what the commands share.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from stateknot.api.projection import load_checkpoint
from stateknot.api.questions import choose_question
from stateknot.kernel.commands import Command as ResumeCommand
from stateknot.kernel.commands import ResumeTarget
from stateknot.kernel.vocabulary import UNSET
from stateknot.management.commands._arguments import show_examples
from stateknot.management.driving import (
    DrivingCommand,
    command_actor,
    pinned_graph,
    refusing,
)
from stateknot.management.exit_codes import EXPLAINED, ExitCode
from stateknot.management.json_argument import read_json
from stateknot.selectors.access import get_current_run
from stateknot.services import resume_run

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLES = f"""\
examples:
  manage.py stateknot_resume order-7 '{{"approved": true}}' --wait
  manage.py stateknot_resume order-7 true --question 0198c5a2-...
  manage.py stateknot_resume order-7 --checkpoint 0198c5a1-... --here

{EXPLAINED}"""


class Command(DrivingCommand):
    """Give an answer, or go on, and tell how the run stands."""

    help = "Answer a question of a thread, or go on from a checkpoint."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("thread", help="The thread's id.")
        parser.add_argument(
            "value", nargs="?", help="The answer: JSON, - for stdin, or @file."
        )
        parser.add_argument(
            "--question", metavar="ID", help="Which question, if several are open."
        )
        parser.add_argument(
            "--checkpoint", metavar="ID", help="Go on from here, not from the newest."
        )
        self.add_driving_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Resume."""
        value = UNSET
        if options["value"] is not None:
            value = read_json(options["value"], "the answer")
        elif options["question"] is not None:
            text = "--question was given without an answer"
            raise CommandError(text, returncode=ExitCode.USAGE)
        with refusing():
            self._resume(options["thread"], value, options)

    def _resume(self, thread_id: str, value: Any, options: dict[str, Any]) -> None:
        get_current_run(None, thread_id)
        question, checkpoint = options["question"], options["checkpoint"]
        if checkpoint is not None:
            load_checkpoint(thread_id, checkpoint)
        if question is None and value is not UNSET:
            question = choose_question(thread_id, checkpoint)
        if options["here"]:
            command = ResumeCommand(resume=value)
            if question is not None:
                command = ResumeCommand(answers={question: value})
            graph, target = pinned_graph(thread_id), ResumeTarget(checkpoint)
            call = partial(graph.resume_from, thread_id, target, command)
            self.drive_here(thread_id, call, options)
            return
        run = resume_run(
            thread_id,
            value,
            interrupt_id=question,
            checkpoint_id=checkpoint,
            actor=command_actor(),
        )
        self.hand_over(run, options)
