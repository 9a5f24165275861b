"""Beneath the commands that start runs or let them go on: here or on the workers.

`DrivingCommand` parses what they share, waits for a run to rest, prints how it stands
and ends with the exit code for that. See `exit_codes.py`.
"""

from __future__ import annotations

import getpass
import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from stateknot.errors import (
    NodeFailedError,
    NodeVisitLimitError,
    RecursionLimitError,
    RevisionMismatchError,
    RunCancelledError,
    RunDeadlineError,
)
from stateknot.kernel.limits import MAXIMUM_SUPERSTEPS
from stateknot.kernel.vocabulary import RunStatus
from stateknot.management.commands._arguments import seconds
from stateknot.management.exit_codes import ExitCode, exit_code_of, refusing
from stateknot.management.output import describe, to_json, to_text
from stateknot.registry import find_graph
from stateknot.selectors import get_run
from stateknot.selectors.access import get_current_run
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.models import Run
    from stateknot.runtime.execution import GraphExecution
    from stateknot.runtime.graph import CompiledGraph

POLL_SECONDS = 0.2
ENDS = (
    NodeFailedError,
    NodeVisitLimitError,
    RecursionLimitError,
    RunCancelledError,
    RunDeadlineError,
)
"""How a run that was driven here may end badly; its row tells the rest."""


def command_actor() -> str:
    """Who gives the command, for the journal."""
    try:
        return f"command:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"command:uid {os.getuid()}"


def superstep_limit(text: str) -> int:
    """Parse a limit of supersteps."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 0 < number <= MAXIMUM_SUPERSTEPS:
        raise ArgumentTypeError(f"{text!r} is not a number of supersteps from 1 on")
    return number


def pinned_graph(thread_id: str) -> CompiledGraph:
    """The revision that a thread's run is pinned to, ready to go on in this process.

    Raises NotFoundError, or RevisionMismatchError when this process has other code.
    """
    run = get_current_run(None, thread_id)
    expected = run.revision.digest
    graph = find_graph(run.graph_id, digest=expected)
    if graph is None:
        newest = find_graph(run.graph_id)
        raise RevisionMismatchError(
            expected, newest.digest if newest else None, run.graph_id
        )
    return graph.with_checkpointer(DjangoCheckpointer())


class DrivingCommand(BaseCommand):
    """Starts a run or lets one go on, and tells how it stands then."""

    def add_driving_arguments(self, parser: ArgumentParser) -> None:
        """Declare where to drive, and how to print."""
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--here",
            action="store_true",
            help="Drive the run in this process, not on the workers.",
        )
        where.add_argument(
            "--wait",
            action="store_true",
            help="Wait until the workers have brought the run to rest.",
        )
        parser.add_argument(
            "--timeout",
            type=seconds,
            metavar="SECONDS",
            help="With --wait: end with exit code 1 when it takes longer.",
        )
        parser.add_argument("--json", action="store_true", help="Print a JSON object.")

    def drive_here(
        self,
        thread_id: str,
        call: Callable[[], GraphExecution],
        options: dict[str, Any],
    ) -> None:
        """Drive a run in this process, then tell how it ended."""
        with suppress(*ENDS):
            call()
        self.tell(get_current_run(None, thread_id), options)

    def hand_over(self, run: Run, options: dict[str, Any]) -> None:
        """Tell how a run stands that the workers were woken for."""
        if options["wait"]:
            self._wait(run, options["timeout"])
        self.tell(get_run(run.id), options)

    def tell(self, run: Run, options: dict[str, Any]) -> None:
        """Print how a run stands and end with the exit code that tells it."""
        told = describe(run)
        self.stdout.write(to_json(told) if options["json"] else to_text(told))
        code = exit_code_of(run.status)
        if code is not ExitCode.DONE:
            sys.exit(code)

    def _wait(self, run: Run, limit: float | None) -> None:
        end = None if limit is None else time.monotonic() + limit
        while not _is_at_rest(run):
            if end is not None and time.monotonic() >= end:
                raise CommandError(
                    f"run {run.id} on thread {run.thread.key!r} is {run.status} after "
                    f"{limit:g} s; it goes on without this command. Is a worker up?"
                )
            time.sleep(POLL_SECONDS)
            run.refresh_from_db(fields=["status"])


def _is_at_rest(run: Run) -> bool:
    status = RunStatus(run.status)
    return status.is_terminal or status is RunStatus.INTERRUPTED


__all__ = [
    "DrivingCommand",
    "command_actor",
    "pinned_graph",
    "refusing",
    "superstep_limit",
]
