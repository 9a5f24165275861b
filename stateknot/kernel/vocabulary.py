"""The words of the engine: reserved node ids, enumerations, sentinels, id types.

Everything else imports from here; this module imports nothing of the package. Read
`records.py` next for the values that are made of these words.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any, Final, NewType, TypeAlias

START: Final = "__start__"
END: Final = "__end__"

NodeId = NewType("NodeId", str)
ActivationId = NewType("ActivationId", str)
ThreadId = NewType("ThreadId", str)
RunId = NewType("RunId", str)
CheckpointId = NewType("CheckpointId", str)
WaitId = NewType("WaitId", str)

JsonValue: TypeAlias = Any
"""A value that JSON can hold: None, bool, int, float, str, list, dict[str, JsonValue].
An alias of Any, since a recursive alias costs more than it finds here."""


class Unset(Enum):
    """The type of UNSET, so that "not given" and None are two things."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET


class RunStatus(StrEnum):
    """Where a run is. `holding` ones keep other runs off the thread."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    CLOSING = "closing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing will happen any more unless somebody reopens the run."""
        return self in TERMINAL_STATUSES

    @property
    def is_holding(self) -> bool:
        """Whether a second run on the thread must wait."""
        return self not in TERMINAL_STATUSES


TERMINAL_STATUSES: Final = frozenset(
    {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}
)
HOLDING_STATUSES: Final = tuple(s for s in RunStatus if s not in TERMINAL_STATUSES)


class DurabilityMode(StrEnum):
    """When a boundary is written: before going on, behind the run, or at its end."""

    SYNC = "sync"
    ASYNC = "async"
    EXIT = "exit"


class CheckpointSource(StrEnum):
    """What made a checkpoint."""

    INPUT = "input"
    LOOP = "loop"
    INTERRUPT = "interrupt"
    FAILURE = "failure"
    UPDATE = "update"
    FORK = "fork"

    @classmethod
    def parse(cls, text: str | None) -> CheckpointSource | None:
        """The source that `text` names, or None."""
        return next((source for source in cls if source.value == text), None)


class AttemptStatus(StrEnum):
    """How one try of an activation ended, or that it still runs."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class WaitStatus(StrEnum):
    """Whether a question still needs its answer; a wait closes once.

    A `delivered` answer was handed to its activation, which has not completed yet.
    """

    OPEN = "open"
    ANSWERED = "answered"
    DELIVERED = "delivered"
    CLOSED = "closed"


class WaitKind(StrEnum):
    """What a run waits for. A `value` was handed to a boundary that asked nothing."""

    INTERRUPT = "interrupt"
    TIMER = "timer"
    VALUE = "value"
