"""How a command ends: the exit codes, and the map from errors and statuses to them."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

from django.core.management.base import CommandError

from stateknot.errors import (
    AnswerError,
    GraphError,
    NodeFailedError,
    NotFoundError,
    RevisionMismatchError,
    RunError,
    SeveralQuestionsError,
    StateError,
    StateKnotError,
)
from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPLAINED = """\
exit codes:
  0  done: accepted, still on its way, or completed
  1  an error of the command itself, or the time of --timeout is over
  2  wrong arguments: bad JSON, a state or an answer that does not fit
  3  the run failed or was cancelled
  4  the run is paused at a question
  5  no such graph, thread, run or checkpoint
  6  conflict: the thread is busy, or there is nothing to resume
"""


class ExitCode(IntEnum):
    """What a script can tell by."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    FAILED = 3
    PAUSED = 4
    NOT_FOUND = 5
    CONFLICT = 6


_BY_ERROR: tuple[tuple[type[StateKnotError], ExitCode], ...] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (AnswerError, ExitCode.USAGE),
    (SeveralQuestionsError, ExitCode.USAGE),
    (RevisionMismatchError, ExitCode.CONFLICT),
    (NodeFailedError, ExitCode.FAILED),
    (StateError, ExitCode.USAGE),
    (GraphError, ExitCode.USAGE),
    (RunError, ExitCode.CONFLICT),
)
"""The first family that an error belongs to decides."""

_BY_STATUS = {
    RunStatus.FAILED: ExitCode.FAILED,
    RunStatus.CANCELLED: ExitCode.FAILED,
    RunStatus.INTERRUPTED: ExitCode.PAUSED,
}


def exit_code_of(status: str) -> ExitCode:
    """The exit code that tells a run's status."""
    return _BY_STATUS.get(RunStatus(status), ExitCode.DONE)


@contextmanager
def refusing() -> Iterator[None]:
    """Turn our errors into a message on stderr and an exit code."""
    try:
        yield
    except StateKnotError as error:
        found = (code for kind, code in _BY_ERROR if isinstance(error, kind))
        code = next(found, ExitCode.ERROR)
        raise CommandError(str(error), returncode=code) from error
