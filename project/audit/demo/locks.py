"""File locks by which the demos of one checkout keep out of each other's way.

The operating system gives a lock back when its process ends, however it ends, so a
killed demo leaves nothing to clean up. What is locked, and why, stands where it is
taken: `server.py` (a port with its logs), the command (the operator's password).
"""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class FileLock:
    """A lock on a file: one process has it alone, or many share it."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = file.open("ab")

    def take_alone(self) -> bool:
        """Take the lock if no other process has it; say whether it was taken."""
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        """Hold the lock together with others; waits while one has it alone."""
        fcntl.flock(self._stream, fcntl.LOCK_SH)

    def close(self) -> None:
        """Give the lock back."""
        self._stream.close()
