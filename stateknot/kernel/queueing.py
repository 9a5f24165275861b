"""What is told of a run that waits for its thread."""

from __future__ import annotations

from stateknot.kernel.records import Event


def queued(behind: str) -> Event:
    """That a run waits for its thread, behind the run that holds it."""
    return Event(kind="run.queued", data={"behind": behind} if behind else {})


def begun() -> Event:
    """That a queued run has its input record now, and its thread."""
    return Event(kind="run.begun")
