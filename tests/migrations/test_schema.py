"""The migrations make what the models say: tables, indexes, names.

Read from the database itself, so that a migration written by hand is held to it too.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

ENGINE = "stateknot"
MODELS = [model._meta for model in apps.get_app_config(ENGINE).get_models()]

pytestmark = pytest.mark.django_db


def constraints_of(table: str) -> dict[str, dict[str, Any]]:
    with connection.cursor() as cursor:
        found: dict[str, dict[str, Any]] = connection.introspection.get_constraints(
            cursor, table
        )
    return found


def test_models_have_no_change_without_a_migration() -> None:
    output = StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=output)
    assert "No changes" in output.getvalue()


@pytest.mark.django_db(transaction=True)
def test_migrations_go_back_to_nothing() -> None:
    """Backwards to no table, and forwards again."""
    executor = MigrationExecutor(connection)
    latest = [key for key in executor.loader.graph.leaf_nodes() if key[0] == ENGINE]
    executor.migrate([(ENGINE, None)])
    assert not any(name.startswith("stateknot_") for name in tables())
    executor = MigrationExecutor(connection)
    executor.migrate(latest)
    assert {meta.db_table for meta in MODELS} <= set(tables())


@pytest.mark.only_on("postgres")
def test_migrations_run_inside_a_transaction() -> None:
    """A project's test case, or a deploy that rolls back, holds one open."""
    executor = MigrationExecutor(connection)
    executor.migrate([(ENGINE, None)])
    executor = MigrationExecutor(connection)
    executor.migrate([k for k in executor.loader.graph.leaf_nodes() if k[0] == ENGINE])
    assert connection.in_atomic_block
    assert {meta.db_table for meta in MODELS} <= set(tables())


def tables() -> list[str]:
    return connection.introspection.table_names()


@pytest.mark.parametrize("meta", MODELS, ids=lambda meta: meta.db_table)
def test_table_is_named_after_the_engine(meta: Any) -> None:
    assert meta.db_table.startswith("stateknot_")


@pytest.mark.parametrize("meta", MODELS, ids=lambda meta: meta.db_table)
def test_foreign_key_leads_an_index(meta: Any) -> None:
    """Deleting a thread, or listing what belongs to one, scans no table."""
    leading = {
        found["columns"][0]
        for found in constraints_of(meta.db_table).values()
        if found["columns"] and (found["index"] or found["unique"])
    }
    keys = {field.column for field in meta.fields if field.is_relation}
    assert keys <= leading


@pytest.mark.parametrize("meta", MODELS, ids=lambda meta: meta.db_table)
def test_constraint_is_named_by_table_and_rule(meta: Any) -> None:
    """`stateknot_<table>_<rule>`: an operator reads the rule in the database's error."""
    declared = [*meta.constraints, *meta.indexes]
    assert declared
    short = {
        "graphrevision": "revision",
        "nodeattempt": "attempt",
        "journalevent": "journal",
        "answeredrequest": "request",
    }
    prefix = f"stateknot_{short.get(meta.model_name, meta.model_name)}_"
    assert [c.name for c in declared if not c.name.startswith(prefix)] == []
    known = constraints_of(meta.db_table)
    assert [c.name for c in declared if c.name not in known] == []


@pytest.mark.parametrize("meta", MODELS, ids=lambda meta: meta.db_table)
def test_row_is_keyed_by_a_uuid(meta: Any) -> None:
    assert meta.pk.get_internal_type() == "UUIDField"
