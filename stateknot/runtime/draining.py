"""Whether this worker is about to end, as far as its tasks are concerned.

Owns the question; who answers it is told by the process that knows (the inside of a
supervised cluster). Elsewhere nothing drains. Read `stateknot/tasks.py` next.

Note [Draining]: django-q2 ends a cluster by letting its workers finish everything that
it has fetched. Fetched wake-ups of runs may each take a whole quantum, so that a stop
takes as long as all of them together, or is cut at the end of its grace period and they
come back only after `retry`. So a draining worker gives wake-ups back instead of
following them, as new messages at the end of the queue, and ends a drive at the next
boundary, whose run is woken in the same way. Handlers that run are left to finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ask: list[Callable[[], bool]] = []


def answer_with(ask: Callable[[], bool]) -> None:
    """Let `ask` answer `is_draining` in this process and in those it forks."""
    _ask[:] = [ask]


def is_draining() -> bool:
    """Whether this worker should begin nothing new. See Note [Draining]."""
    return any(ask() for ask in _ask)
