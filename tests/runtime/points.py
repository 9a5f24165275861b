"""Real stores that can be made to fail, wait or watch at a named write.

`pointed(checkpointer)` gives a store of the same kind that reaches each name of
`POINTS` on its way; what a test puts there with `at` runs in the thread that writes,
inside its transaction: one that raises undoes the write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = {
    "before commit": "nothing of the boundary is written yet",
    "after commit": "the boundary is written and not yet committed",
    "before record": "nothing of a finished or failed attempt is written yet",
    "after record": "a finished or failed attempt is written and not yet committed",
    "before finish": "a run that ends without a checkpoint is not yet told so",
}


class Crash(BaseException):
    """The end of the process, as far as one can be had inside a test."""


class Pointed:
    """What a store of either kind becomes: `seen` counts how often it was where."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = dict.fromkeys(POINTS, 0)
        self.stored: list[str] = []
        self._acts: dict[str, Callable[[int], None]] = {}

    def at(self, point: str, act: Callable[[int], None]) -> Any:
        """Call `act(how often it was here)` at `point` from now on."""
        assert point in POINTS
        self._acts[point] = act
        return self

    def clear(self) -> None:
        """Do nothing anywhere from now on."""
        self._acts = {}

    def _reach(self, point: str) -> None:
        self.seen[point] += 1
        act = self._acts.get(point)
        if act is not None:
            act(self.seen[point])

    def commit(self, fence: Any, boundary: Any) -> None:
        with self.atomic():  # type: ignore[attr-defined]
            self._reach("before commit")
            super().commit(fence, boundary)  # type: ignore[misc]
            self._reach("after commit")
        self.stored.append(str(boundary.checkpoint.source))

    def record_attempts(self, fence: Any, attempts: Any, events: Any) -> None:
        self._reach("before record")
        super().record_attempts(fence, attempts, events)  # type: ignore[misc]
        self._reach("after record")

    def finish(self, fence: Any, status: Any, **facts: Any) -> None:
        self._reach("before finish")
        super().finish(fence, status, **facts)  # type: ignore[misc]


def pointed(checkpointer: Any) -> Any:
    """An empty store of the same kind as `checkpointer`, with points."""
    return type("PointedStore", (Pointed, type(checkpointer)), {})()


def raising(error: BaseException, *, on: int = 1) -> Callable[[int], None]:
    """An act that raises `error` at the `on`-th time only."""

    def act(times: int) -> None:
        if times == on:
            raise error

    return act
