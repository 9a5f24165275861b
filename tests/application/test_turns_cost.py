"""What looking for work costs: plans and rows of PostgreSQL, not times.

Rows PE-01 and PE-02.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from stateknot.kernel.records import Slots
from stateknot.models import Run
from stateknot.runtime.recovery import sweep
from stateknot.runtime.turns import choose
from tests.application.desk import work
from tests.application.test_turns import lose_wake_ups, start, take

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def add_finished(count: int) -> None:
    """Add rows of runs that ended, in the shape of one that did."""
    done = Run.objects.filter(status="completed")[0]
    values = {f.attname: getattr(done, f.attname) for f in Run._meta.concrete_fields}
    first = Run.objects.count()
    Run.objects.bulk_create(
        Run(**{**values, "id": _uuid(number), "root_run_id": _uuid(number)})
        for number in range(first, first + count)
    )


def analyze() -> None:
    """Let the planner know what there is."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _uuid(number: int) -> str:
    return f"00000000-0000-7000-8000-{number:012d}"


def plans(act: Callable[[], Any]) -> list[dict[str, Any]]:
    """The executed plan of each query on runs that `act` makes."""
    with CaptureQueriesContext(connection) as seen, transaction.atomic():
        act()
        transaction.set_rollback(True)
    found = []
    for query in seen.captured_queries:
        sql = query["sql"]
        if not sql.startswith(("SELECT", "UPDATE")) or "stateknot_run" not in sql:
            continue
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
            found.append(cursor.fetchone()[0][0]["Plan"])
            transaction.set_rollback(True)
    assert found
    return found


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """A plan's node and all below it."""
    return [plan] + [n for child in plan.get("Plans", ()) for n in nodes(child)]


def rows_read(found: list[dict[str, Any]]) -> float:
    """How many rows of runs the plans touched, those filtered out included."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        * node["Actual Loops"]
        for plan in found
        for node in nodes(plan)
        if node.get("Relation Name") == "stateknot_run"
    )


@pytest.fixture
def history() -> list[str]:
    """2,000 runs that ended, and 20 that wait for a wake-up; gives those."""
    start(1)
    work()
    add_finished(2_000)
    waiting = start(20)
    lose_wake_ups()
    analyze()
    return waiting


LOOKS = {
    "choice": lambda waiting: choose(waiting[0], using="default"),
    "claim": lambda waiting: take(waiting[0], Slots(of_graph=3, in_all=9)),
    "sweep": lambda _waiting: sweep(),
}


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("look", LOOKS)
def test_pe_01_looking_for_work_uses_an_index(history: list[str], look: str) -> None:
    """PE-01: no query of runs reads the table from end to end."""
    for plan in plans(lambda: LOOKS[look](history)):
        scanned = [n for n in nodes(plan) if n["Node Type"] == "Seq Scan"]
        assert "stateknot_run" not in {n["Relation Name"] for n in scanned}


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("look", LOOKS)
def test_pe_02_looking_for_work_does_not_grow_with_finished_runs(
    history: list[str], look: str
) -> None:
    """PE-02: as many queries and as many rows, behind twice as many ended runs."""
    before = plans(lambda: LOOKS[look](history))
    add_finished(2_000)
    analyze()
    behind = plans(lambda: LOOKS[look](history))
    assert len(behind) == len(before)
    assert rows_read(behind) == rows_read(before)
