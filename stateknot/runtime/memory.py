"""The memory store with this machine's clock: what `MemoryCheckpointer()` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.memory import MemoryStore
from stateknot.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


class MemoryCheckpointer(MemoryStore):
    """Keeps threads in this process, for tests and runs that need not survive it."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        super().__init__(now or SystemClock().now)
