"""Signals as something to wait for, instead of code that runs at any moment.

Owns the signal handlers of a supervisor while it runs and gives them back afterwards.
Knows nothing of processes. Read `worker.py` next.

The handlers do nothing: Python writes each signal's number into a pipe, and the main
loop reads it there. So a signal ends a wait at once and can never interrupt a
statement half way, and the end of a child (SIGCHLD) wakes the loop as well.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class SignalInbox:
    """Counts the stop signals that arrived; use it as a context manager."""

    def __init__(self) -> None:
        self.stops = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            self._previous[number] = signal.signal(number, _note)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float) -> None:
        """Wait for a signal, at most `seconds`; count the stop signals that came."""
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            for number in os.read(self._reader, 4096):
                self.stops += number in STOP_SIGNALS


def _note(number: int, frame: FrameType | None) -> None:
    """Keep the default action away; the number stands in the pipe already."""
