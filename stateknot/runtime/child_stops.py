"""How a child run that asks or waits ends the handler that called it.

`children.py` raises these; the node runner turns them into the parent's own question
(`Asked`) or wait (`Deferred`). See Note [How a child stops its parent].

Note [How a child stops its parent]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A child that asks a question cannot be waited for: the handler that called it is ended
in the middle, by an exception that is no `Exception`, so that a broad `except` in
author's code does not swallow the question. The node runner turns it into the parent's
own question or wait. When the answer comes, the handler runs again from its start;
calls that finished are remembered, the one that asked goes on. A task group wraps the
exceptions of its tasks, so groups are looked through.

A child whose revision this process has no code for ends the whole drive, and the
drives of all parents above it, but no run: each is given back, what siblings finished
is kept, and a process that has the code goes on. It is no `Exception` either, so that
neither the handler nor the retry of its node takes it for a failure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from stateknot.errors import LeaseError
from stateknot.kernel.outcome import Asked, Deferred
from stateknot.runtime.execution import interrupt_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from stateknot.errors import RevisionMismatchError
    from stateknot.kernel.commands import Interrupt
    from stateknot.kernel.records import WaitRecord


class ChildPaused(BaseException):
    """Ends a handler whose child asked; carries the child's open questions."""

    def __init__(self, interrupts: tuple[Interrupt, ...]) -> None:
        super().__init__("a child graph waits for answers")
        self.interrupts = interrupts


class ChildDeferred(BaseException):
    """Ends a handler whose child waits; carries for how many seconds."""

    def __init__(self, delay_seconds: float) -> None:
        super().__init__("a child graph waits for a time")
        self.delay_seconds = delay_seconds


class ChildOfOtherCode(BaseException):
    """Ends a drive that cannot go on with a child; carries the refusal."""

    def __init__(self, refusal: RevisionMismatchError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def passed_on(wait: WaitRecord, now: datetime) -> Interrupt:
    """A child's question as its parent asks it, with what is left of its deadline."""
    question = interrupt_of(wait)
    if wait.due_at is None:
        return question
    return replace(question, expires_in=max(wait.due_at - now, timedelta(0)))


def read_stop(error: BaseException) -> Asked | Deferred:
    """What the children that ended a handler make of it.

    Questions come before waits: an answer may come earlier than a due time. Raises what
    else ended the handler, since a failure comes before both.
    """
    stops = list(_leaves(error))
    for stop in stops:
        if isinstance(stop, (LeaseError, ChildOfOtherCode)):
            raise stop
    _raise_others(error)
    questions = [q for s in stops if isinstance(s, ChildPaused) for q in s.interrupts]
    if questions:
        return Asked(interrupts=tuple(questions))
    delays = [s.delay_seconds for s in stops if isinstance(s, ChildDeferred)]
    return Deferred(delay_seconds=min(delays))


def _raise_others(error: BaseException) -> None:
    """Raise what is no child's stop, as a group of Exceptions where it is one."""
    if isinstance(error, BaseExceptionGroup):
        _, others = error.split((ChildPaused, ChildDeferred))
        if others is not None:
            raise others


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
