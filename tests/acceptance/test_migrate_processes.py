"""Several real processes set up one empty database, then a worker works on it.

Row VD-08 of cases/field_reports.md, on both databases.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.acceptance.processes import ManageProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
    pytest.mark.timeout(240),
]
PROCESSES = 3
NAME = "stateknot_empty_for_migrate"
SCHEMA = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",
    "postgres": (
        "SELECT c.relname, c.relkind::text, a.attname, a.atttypid::int "
        "FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relnamespace = 'public'::regnamespace"
    ),
}


@pytest.fixture
def empty_url(database_kind: str, tmp_path: Path, db: None) -> Iterator[str]:
    """Give the address of a database without a table."""
    if database_kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite3'}"
        return
    import psycopg

    server = os.environ["DATABASE_URL"]
    parts = urlsplit(server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        yield urlunsplit(parts._replace(path=f"/{NAME}"))
        connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture
def env(empty_url: str) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": empty_url}


def read(url: str, kind: str, query: str) -> set[Any]:
    if kind == "sqlite":
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            return set(connection.execute(query))
    import psycopg

    with psycopg.connect(url) as connection:
        return set(connection.execute(query))


def migrate_at_once(env: dict[str, str], folder: Path, *names: str) -> None:
    """Start one `migrate` per name, and see that each of them ends well."""
    started = [
        ManageProcess("migrate", "--no-input", env=env, log=folder / f"{name}.log")
        for name in names
    ]
    try:
        for process in started:
            assert process.end() == 0, process.output
    finally:
        for process in started:
            process.__exit__()


def test_vd_08_processes_that_migrate_at_once_all_succeed(
    empty_url: str, env: dict[str, str], database_kind: str, tmp_path: Path
) -> None:
    """VD-08: one makes the tables, the others find them made."""
    names = [f"migrate-{number}" for number in range(PROCESSES)]
    migrate_at_once(env, tmp_path, *names)
    query = "SELECT name FROM django_migrations WHERE app = 'stateknot'"
    assert ("0001_initial",) in read(empty_url, database_kind, query)


def test_vd_08_workers_change_no_table(
    empty_url: str, env: dict[str, str], database_kind: str, tmp_path: Path
) -> None:
    """VD-08: two workers that start and drive a run leave the schema as it was."""
    migrate_at_once(env, tmp_path, "migrate")
    before = read(empty_url, database_kind, SCHEMA[database_kind])
    arguments = ("examples.review", '{"count": 0}', "--wait", "--timeout", "25")
    options = {"env": env}
    with (
        ManageProcess(
            "stateknot_worker", "--workers=1", log=tmp_path / "a.log", **options
        ),
        ManageProcess(
            "stateknot_worker", "--workers=1", log=tmp_path / "b.log", **options
        ),
        ManageProcess(
            "stateknot_run", *arguments, log=tmp_path / "run.log", **options
        ) as run,
    ):
        assert run.end() == 0, run.output
    assert "is completed" in run.output
    assert read(empty_url, database_kind, SCHEMA[database_kind]) == before
