"""Processes that tests start share the test's database, on both databases."""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

CODE = """
import django
django.setup()
from django.contrib.auth.models import User
print(*User.objects.values_list("username", flat=True))
User.objects.create(username="child")
"""


def test_second_process_shares_rows_both_ways(
    second_process_env: dict[str, str],
) -> None:
    User.objects.create(username="parent")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=settings.BASE_DIR,
        env=second_process_env,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["parent"]
    assert User.objects.filter(username="child").exists()


def test_database_is_the_one_that_was_asked_for(
    transactional_db: None, database_kind: str
) -> None:
    """SQLite is a file in WAL mode: readers do not wait for a worker's write."""
    with connection.cursor() as cursor:
        if database_kind == "postgres":
            cursor.execute("SELECT version()")
            assert cursor.fetchone()[0].startswith("PostgreSQL")
        else:
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)
