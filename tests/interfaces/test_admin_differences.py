"""What a boundary changed, and what it took: the run page beside the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot.admin.json_diff import MOST_ROWS, compare_states
from stateknot.kernel.state import MASK
from stateknot.registry import _graphs
from stateknot.services import retry_run, update_state
from tests.interfaces.admin_samples import SECRET, drive_on, driven, url_of

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

Rows = list[tuple[str, str | None, str | None]]


def compared(before: dict[str, Any], after: dict[str, Any]) -> Rows:
    found = compare_states(before, after, before, after)
    return [(row.path, row.before, row.after) for row in found.rows]


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, [("a", "1", "1.0")]),
        ({"a": 1}, {"a": True}, [("a", "1", "true")]),
        ({}, {"a": None}, [("a", None, "null")]),
        ({"a": "x"}, {}, [("a", '"x"', None)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("a.c", "2", "3")]),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, [("a[2]", None, "3")]),
        ({"a": [1, 2]}, {"a": []}, [("a[0]", "1", None), ("a[1]", "2", None)]),
        ({"a": [1]}, {"a": {"b": 1}}, [("a", "[1]", '{"b": 1}')]),
        ({"a": "é"}, {"a": "中"}, [("a", '"é"', '"中"')]),
    ],
)
def test_difference_is_told_where_it_is(
    before: dict[str, Any], after: dict[str, Any], rows: Rows
) -> None:
    assert compared(before, after) == rows


def test_differences_are_bounded() -> None:
    found = compare_states({}, after := {"a": {}}, {}, after)
    assert not found.has_more
    many = {"a": list(range(MOST_ROWS * 3)), "b": list(range(5))}
    empty: dict[str, Any] = {"a": [], "b": []}
    found = compare_states(empty, many, empty, many)
    assert len(found.rows) == MOST_ROWS
    assert found.has_more


def test_changed_secret_is_told_as_changed_and_not_shown() -> None:
    masked = {"token": MASK}
    found = compare_states({"token": "a"}, {"token": "b"}, masked, masked)
    assert [(row.before, row.after) for row in found.rows] == [(MASK, MASK)]


def test_page_shows_what_the_boundary_changed(admin_client: Client) -> None:
    run = driven(address="x")
    rows = admin_client.get(url_of(run)).context["differences"].rows
    assert [(row.path, row.after) for row in rows] == [("notes[1]", '"shipped"')]
    boundaries = admin_client.get(url_of(run)).context["boundaries"].rows
    address = f"{url_of(run)}?at={boundaries[1].id}"
    rows = admin_client.get(address).context["differences"].rows
    assert [(row.path, row.after) for row in rows] == [("notes[0]", '"fetched"')]


def test_page_shows_an_edit_beside_what_it_replaced(admin_client: Client) -> None:
    run = driven()
    update_state("t", {"address": "here", "token": f"{SECRET}-new"})
    response = admin_client.get(url_of(run))
    rows = {row.path: row for row in response.context["differences"].rows}
    assert (rows["address"].before, rows["address"].after) == ('""', '"here"')
    assert rows["token"].after == MASK
    assert SECRET not in response.content.decode()


def test_first_boundary_has_no_difference(admin_client: Client) -> None:
    run = driven()
    first = admin_client.get(url_of(run)).context["boundaries"].rows[0]
    page = admin_client.get(f"{url_of(run)}?at={first.id}")
    assert page.context["differences"] is None


def test_difference_is_not_shown_without_the_graphs_code(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody here knows which fields are secret."""
    run = driven(address="x")
    monkeypatch.delitem(_graphs, "tests.admin")
    assert admin_client.get(url_of(run)).context["differences"] is None


def test_timeline_tells_attempts_and_duration(admin_client: Client) -> None:
    """AD-09: what failed stays beside what went well."""
    run = driven()
    update_state("t", {"address": "here"})
    retry_run("t")
    drive_on(run)
    rows = admin_client.get(url_of(run)).context["boundaries"].rows
    told = [(row.source, row.tries, row.failed_tries) for row in rows]
    assert told == [
        ("input", 0, 0),
        ("failure", 1, 1),
        ("update", 0, 0),
        ("loop", 1, 0),
        ("loop", 1, 0),
    ]
    assert [row.seconds is None for row in rows] == [True, False, True, False, False]
