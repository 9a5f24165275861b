"""Time, ids and chance for the engine, behind one object that tests replace."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol

from uuid_utils.compat import uuid7


class Clock(Protocol):
    """What the engine needs of the world."""

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait in this thread."""
        ...

    def random(self) -> float:
        """A number in [0, 1), for jitter."""
        ...

    def new_id(self) -> str:
        """A fresh id: a UUID version 7 as text, rising in this process."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """See the protocol."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See the protocol."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See the protocol."""
        time.sleep(seconds)

    def random(self) -> float:
        """See the protocol."""
        return random.random()  # noqa: S311 - jitter, not a secret

    def new_id(self) -> str:
        """See the protocol."""
        return str(uuid7())
