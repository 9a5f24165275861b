"""A proxy before PostgreSQL that cuts a connection in the middle of a commit.

It reads what clients send: a connection that says `walk.CUT` is cut at its next commit,
before that reaches the server, or so that the server's answer reaches nobody. With
`every`, of all commits one in so many is cut, one way and the other in turn. A commit
is a COMMIT, or the one statement of a boundary, which is a transaction by itself. Knows
no rows; forwards on loopback alone.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit, urlunsplit

from tests.acceptance.matrix_site.walk import CUT

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
CHUNK = 65536
MARK, COMMIT = CUT.encode(), b"COMMIT"
# A Bind message: portal without a name, then the statement that the engine prepared.
# A Query message: the same as text.
BOUNDARY = re.compile(
    rb"B.{4}\x00stateknot_\d+\x00|Q.{4}WITH held AS \(UPDATE ", re.DOTALL
)


@dataclass(slots=True)
class CommitCutter:
    """Which commits are cut, and whether the server still hears of them."""

    is_heard: bool = False
    every: int = 0
    at_most: int = 1
    cuts: int = 0
    _seen: int = 0
    _armed: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, connection: int, sent: bytes) -> bool | None:
        """Whether the server hears what a connection sent that is cut; None for not."""
        with self._lock:
            if MARK in sent:
                self._armed.add(connection)
            if not _is_commit(sent) or self.cuts >= self.at_most:
                return None
            self._seen += 1
            is_turn = bool(self.every) and self._seen % self.every == 0
            if not is_turn and connection not in self._armed:
                return None
            self.cuts += 1
            return self.is_heard if not self.every else self.cuts % 2 == 0


class CuttingProxy:
    """Listens on a port of its own and forwards to the server of `url`."""

    def __init__(self, url: str, cutter: CommitCutter) -> None:
        self._parts = urlsplit(url)
        self._cutter = cutter
        self._listener = socket.create_server((HOST, 0))
        self._count = 0

    @property
    def url(self) -> str:
        """The database's URL through this proxy."""
        user = self._parts.username or "postgres"
        place = f"{user}@{HOST}:{self._listener.getsockname()[1]}"
        return urlunsplit(("postgresql", place, self._parts.path, "", ""))

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *exc_info: object) -> None:
        # Wakes the thread that accepts; closing alone would leave it there.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._count += 1
            server = self._connect()
            self._spawn(self._forward_sent, self._count, client, server)
            self._spawn(self._forward_answers, client, server)

    def _connect(self) -> socket.socket:
        host = parse_qs(self._parts.query).get("host", [self._parts.hostname])[0]
        port = self._parts.port or 5432
        assert host is not None
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _forward_sent(
        self, number: int, client: socket.socket, server: socket.socket
    ) -> None:
        with contextlib.suppress(OSError):
            while sent := client.recv(CHUNK):
                is_heard = self._cutter.decide(number, sent)
                if is_heard is not None:
                    _cut(client, server, sent if is_heard else b"")
                    return
                server.sendall(sent)
        _close(client)
        _close(server)

    def _forward_answers(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while answer := server.recv(CHUNK):
                client.sendall(answer)
        _close(client)
        _close(server)


def _is_commit(sent: bytes) -> bool:
    return COMMIT in sent or BOUNDARY.match(sent) is not None


def _cut(client: socket.socket, server: socket.socket, last: bytes) -> None:
    """End both sides; the server still reads `last`, and nobody reads its answer."""
    client.shutdown(socket.SHUT_RDWR)
    if last:
        server.sendall(last)
    server.shutdown(socket.SHUT_WR)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
