"""A memory store that can crash at a named point, as a killed process would.

`CRASH_POINTS` is the one table of the points. Behind a crash everything that the dead
process still tries to write is refused, its lease is not given back, and what it had
committed stands. Read `running.py` for how a run is taken up again.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.memory import MemoryCheckpointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from stateknot.kernel.records import AttemptRecord, Event, Fence, RunRecord
    from stateknot.kernel.writes import Admission, Boundary, Deferral

CRASH_POINTS: Final = {
    "before admit": "a start was asked for, nothing of it is stored",
    "after admit": "the run is stored with its input, nothing ran",
    "before commit": "handlers ran, nothing of their superstep is stored",
    "after commit": "the superstep is stored, its process has not heard of it",
    "before record": "an attempt ended between boundaries and is not stored",
    "after record": "an attempt that ended between boundaries is stored",
    "before defer": "a superstep is about to be put off and is not yet",
    "after defer": "a superstep was put off, the run waits",
    "before finish": "a limit was reached, the run is not told so",
    "after finish": "the run ended at a limit",
}
"""Where a store can crash, and what is true there."""


class Crash(BaseException):
    """The end of a process; no handler's `except Exception` stops it."""


class CrashingStore(MemoryCheckpointer):
    """Raises `Crash` the `on`-th time that `point` is reached. `reached` counts all."""

    def __init__(
        self, now: Callable[[], datetime], point: str | None = None, on: int = 1
    ) -> None:
        if point is not None and point not in CRASH_POINTS:
            known = ", ".join(CRASH_POINTS)
            raise ValueError(f"no crash point {point!r}; there are {known}")
        super().__init__(now)
        self.is_crashed = False
        self.reached: dict[str, int] = dict.fromkeys(CRASH_POINTS, 0)
        self._point, self._on = point, on
        self._here = threading.local()

    def recover(self) -> None:
        """Begin a new process, in which the dead one's leases have expired.

        Writes are taken again, and nothing crashes any more.
        """
        self.is_crashed, self._point = False, None
        for run in self._runs.values():
            if run.holder is not None:
                run.hold(None)
                run.change(status=RunStatus.PENDING)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """See the port; points behind a write are reached once it is committed."""
        outer: list[str] | None = getattr(self._here, "behind", None)
        if outer is not None:
            with super().atomic():
                yield
            return
        behind: list[str] = []
        self._here.behind = behind
        try:
            with super().atomic():
                yield
        finally:
            self._here.behind = None
        for point in behind:
            self._reach(point)

    def _write(self, name: str, write: Callable[[], Any]) -> Any:
        self._reach(f"before {name}")
        written = write()
        behind = getattr(self._here, "behind", None)
        if behind is None:
            self._reach(f"after {name}")
        else:
            behind.append(f"after {name}")
        return written

    def _reach(self, point: str) -> None:
        if not self.is_crashed:
            self.reached[point] += 1
            is_here = self._point == point and self.reached[point] == self._on
            self.is_crashed = is_here
        if self.is_crashed:
            raise Crash(f"{point}: {CRASH_POINTS[point]}")

    def admit(self, admission: Admission, holder: str | None = None) -> RunRecord:
        """See the port."""
        admit = super().admit
        run: RunRecord = self._write("admit", lambda: admit(admission, holder))
        return run

    def commit(self, fence: Fence, boundary: Boundary) -> bool:
        """See the port."""
        commit = super().commit
        return bool(self._write("commit", lambda: commit(fence, boundary)))

    def record_attempts(
        self, fence: Fence, attempts: Sequence[AttemptRecord], events: Sequence[Event]
    ) -> None:
        """See the port."""
        record = super().record_attempts
        self._write("record", lambda: record(fence, attempts, events))

    def defer(self, fence: Fence, deferral: Deferral) -> bool:
        """See the port."""
        defer = super().defer
        return bool(self._write("defer", lambda: defer(fence, deferral)))

    def finish(
        self,
        fence: Fence,
        status: RunStatus,
        *,
        error: dict[str, Any] | None,
        events: Sequence[Event],
    ) -> bool:
        """See the port."""
        finish = super().finish
        write = partial(finish, fence, status, error=error, events=events)
        return bool(self._write("finish", write))

    def release(self, fence: Fence) -> bool:
        """See the port; a dead process gives nothing back."""
        return False if self.is_crashed else super().release(fence)
