"""Those who use the engine during a soak: they start runs and answer questions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench.soak.graphs import SOAK
from stateknot.errors import RunError
from stateknot.models import Run, Wait
from stateknot.services import resume_run, start_run

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTHS = (1, 2, 3, 5, 8)
_MOST_ANSWERS = 100


def thread_of(number: int) -> str:
    """The thread of a run."""
    return f"soak-{number}"


def width_of(number: int) -> int:
    """How many parts a run has."""
    return _WIDTHS[number % len(_WIDTHS)]


class Crowd:
    """Starts `runs` runs one after the other and answers what they ask."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.started = 0

    def start_up_to(self, number: int) -> None:
        """Start runs until `number` are, at most all."""
        while self.started < min(number, self.runs):
            thread = thread_of(self.started)
            state = {"width": width_of(self.started)}
            start_run(SOAK, state, thread_id=thread, idempotency_key=thread)
            self.started += 1

    def answer(self) -> None:
        """Answer the questions that are open; one that moved on meanwhile is left."""
        for thread, question in self._open_questions():
            try:
                resume_run(thread, 7, interrupt_id=question)
            except RunError as error:
                sys.stderr.write(f"soak: {thread}: {error}\n")

    def _open_questions(self) -> Iterator[tuple[str, str]]:
        waits = Wait.objects.filter(kind="interrupt", status="open")
        for wait in waits.select_related("thread")[:_MOST_ANSWERS]:
            yield wait.thread.key, wait.question_id or str(wait.id)

    def count_open(self) -> int:
        """How many of the runs have not ended."""
        ended = Run.objects.filter(graph_id=SOAK, ended_at__isnull=False)
        return self.started - ended.count()
