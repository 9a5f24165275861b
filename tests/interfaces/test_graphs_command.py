"""`stateknot_graphs`: revisions as the code and the database know them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from project.examples import review
from stateknot.services import start_run
from tests.interfaces.test_commands import call


@pytest.fixture
def no_tables(transactional_db: None) -> Any:
    """Take the runs' table away for the test."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE stateknot_run RENAME TO stateknot_run_away")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE stateknot_run_away RENAME TO stateknot_run")


@pytest.mark.django_db
def test_graphs_counts_the_runs_of_a_revision() -> None:
    start_run(review.GRAPH_ID, {"count": 0})
    start_run(review.GRAPH_ID, {"count": 0})
    code, text = call("graphs", "--json")
    (found,) = [row for row in json.loads(text) if row["graph_id"] == review.GRAPH_ID]
    assert code == 0
    assert (found["digest"], found["nodes"]) == (review.DIGEST, 8)
    assert (found["state"], found["runs"]) == ("active", {"pending": 2})


@pytest.mark.django_db
def test_graphs_lists_what_was_never_started() -> None:
    _, text = call("graphs")
    (line,) = [row for row in text.splitlines() if review.DIGEST in row]
    assert "8 nodes  not seen by the database" in line


@pytest.mark.django_db
def test_graphs_shows_what_a_graph_binds() -> None:
    _, text = call("graphs", review.GRAPH_ID, "--json")
    found = json.loads(text)
    bound = [node for node in found["nodes"] if "call_site" in node]
    assert [node["iteration"] for node in bound] == [2, 2, 1, 1, 0, 0]
    assert {node["handler"] for node in bound} == {
        "project.examples.review.decide",
        "project.examples.review.work",
    }


@pytest.mark.django_db
def test_graphs_names_an_unknown_graph() -> None:
    code, text = call("graphs", "nobody")
    assert code == 5
    assert "no graph 'nobody'" in text


def test_graphs_without_tables_tells_what_the_code_says(no_tables: None) -> None:
    code, text = call("graphs")
    assert code == 0
    assert review.DIGEST in text
