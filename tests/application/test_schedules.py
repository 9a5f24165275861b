"""Schedules: declared, ticked once, caught up, kept from overlapping."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from stateknot import CronSchedule
from stateknot.errors import ScheduleError, StateError
from stateknot.models import Run, Schedule
from stateknot.registry import list_schedules, register
from stateknot.services.schedules import start_due, store_schedules
from stateknot.services.sweeping import SweepPass
from tests.application.desk import ASK, LINE, build_ask, build_line, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]

NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NAME = "desk.every"


def declare(cron: str = "*/10 * * * *", **options: Any) -> Schedule:
    """Declare and store the schedule of the line, or of `graph`; due from noon on."""
    graph = options.pop("graph", None) or build_line()
    register(graph, schedules=[CronSchedule(NAME, cron, **options)])
    store_schedules()
    Schedule.objects.update(next_tick_at=NOON)
    return current()


def current() -> Schedule:
    return Schedule.objects.get(name=NAME)


def threads() -> list[str]:
    """When each run's tick was: the thread says it."""
    found = Run.objects.order_by("thread__key").values_list("thread__key", flat=True)
    return [key.removeprefix(f"{NAME}/2026-06-01T") for key in found]


def test_tm_01_schedule_starts_at_its_local_time() -> None:
    """TM-01: 06:00 in Berlin is 04:00 of UTC in summer, 05:00 in winter."""
    declare("0 6 * * *", time_zone="Europe/Berlin")
    eve = datetime(2026, 10, 24, 4, 0, tzinfo=UTC)
    Schedule.objects.update(next_tick_at=eve)
    start_due(eve)
    work()
    start_due(eve + timedelta(hours=25))
    keys = list(Run.objects.order_by("id").values_list("thread__key", flat=True))
    assert keys == [f"{NAME}/2026-10-24T04:00:00Z", f"{NAME}/2026-10-25T05:00:00Z"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"catch_up": "skip"}, []),
        ({"catch_up": "last"}, ["14:00:00Z"]),
        (
            {"catch_up": "all", "catch_up_limit": 5, "overlap": "allow"},
            [f"{t}:00Z" for t in ("13:20", "13:30", "13:40", "13:50", "14:00")],
        ),
    ],
)
def test_tm_03_missed_ticks_are_caught_up_as_the_policy_says(
    policy: dict[str, Any], expected: list[str]
) -> None:
    """TM-03: every 10 minutes, down for two hours: none or one, or five."""
    declare(**policy)
    start_due(NOON + timedelta(hours=2, minutes=6))
    assert threads() == expected
    row = current()
    assert row.skipped_count == 13 - len(expected)
    assert row.next_tick_at == NOON + timedelta(hours=2, minutes=10)


def test_tm_03_tick_that_is_a_little_late_is_not_missed() -> None:
    """A sweep comes some seconds behind the tick."""
    declare(catch_up="skip")
    start_due(NOON + timedelta(seconds=20))
    assert threads() == ["12:00:00Z"]


def test_tick_is_started_with_the_declared_input() -> None:
    declare(input={"total": 7})
    (run_id,) = start_due(NOON).run_ids
    work()
    run = Run.objects.get()
    assert (str(run.id), run.status, run.actor) == (run_id, "completed", "(schedule)")
    assert run.metadata == {"schedule": NAME}
    assert current().last_run == run


def test_tm_04_same_tick_is_started_by_one_of_two_passes() -> None:
    """TM-04: and by neither again once the cursor is put back."""
    declare()
    assert len(start_due(NOON).run_ids) == 1
    assert start_due(NOON).run_ids == ()
    Schedule.objects.update(next_tick_at=NOON, last_run=None)
    start_due(NOON)
    assert threads() == ["12:00:00Z"]


@pytest.mark.django_db(transaction=True)
def test_tm_04_same_tick_of_two_clusters_is_one_run() -> None:
    """TM-04: four passes at once."""
    declare(overlap="allow")

    def tick() -> int:
        try:
            return len(start_due(NOON).run_ids)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(tick) for _ in range(4)]
    assert sum(task.result() for task in started) == 1
    assert threads() == ["12:00:00Z"]


def test_tm_05_registration_is_idempotent() -> None:
    """TM-05: three starts of the code, one row."""
    declare()
    before = current()
    for _ in range(3):
        register(build_line(), schedules=[CronSchedule(NAME, "*/10 * * * *")])
        assert store_schedules() == 0
    assert Schedule.objects.count() == 1
    assert current().next_tick_at == before.next_tick_at


def test_tm_05_changed_cron_updates_the_row() -> None:
    """TM-05: it begins with the first tick of the new expression."""
    declare()
    register(build_line(), schedules=[CronSchedule(NAME, "0 0 1 1 *")])
    assert store_schedules() == 1
    row = current()
    assert row.cron == "0 0 1 1 *"
    assert (row.next_tick_at.month, row.next_tick_at.day) == (1, 1)
    assert row.next_tick_at > datetime.now(UTC)


def test_edit_of_an_operator_stays_until_the_code_changes() -> None:
    declare()
    Schedule.objects.update(is_enabled=False, cron="0 0 * * *")
    store_schedules()
    assert (current().is_enabled, current().cron) == (False, "0 0 * * *")
    register(build_line(), schedules=[CronSchedule(NAME, "5 * * * *")])
    store_schedules()
    assert (current().is_enabled, current().cron) == (True, "5 * * * *")


def test_pass_stores_what_is_declared_once() -> None:
    """A row that an operator deletes does not come back before the next start."""
    register(build_line(), schedules=[CronSchedule(NAME, "0 0 1 1 *")])
    sweep = SweepPass()
    sweep()
    assert current().next_tick_at is not None
    Schedule.objects.all().delete()
    sweep()
    assert not Schedule.objects.exists()
    SweepPass()()
    assert current()


def test_tm_06_tick_is_skipped_while_the_last_run_goes_on() -> None:
    """TM-06: never two at once, and the skipped ticks are counted."""
    declare("* * * * *", graph=build_ask())
    for minute in range(4):
        start_due(NOON + MINUTE * minute)
    assert threads() == ["12:00:00Z"]
    assert (current().started_count, current().skipped_count) == (1, 3)


def test_tm_06_one_tick_is_kept_while_the_last_run_goes_on() -> None:
    """TM-06: queue one; it is started once the run has ended, the others are not."""
    declare("* * * * *", overlap="enqueue", graph=build_ask())
    for minute in range(4):
        start_due(NOON + MINUTE * minute)
    assert threads() == ["12:00:00Z"]
    row = current()
    assert (row.held_tick_at, row.skipped_count) == (NOON + MINUTE, 2)
    Run.objects.update(status="completed")
    assert len(start_due(NOON + MINUTE * 3).run_ids) == 1
    assert threads() == ["12:00:00Z", "12:01:00Z"]
    row = current()
    assert (row.held_tick_at, row.skipped_count) == (None, 2)


def test_tm_06_overlap_is_allowed_on_purpose() -> None:
    declare("* * * * *", overlap="allow", graph=build_ask())
    for minute in range(3):
        start_due(NOON + MINUTE * minute)
    assert len(threads()) == 3


def test_disabled_schedule_starts_nothing() -> None:
    declare(is_enabled=False)
    assert start_due(NOON).run_ids == ()


def test_schedule_of_unknown_code_is_left_for_a_process_that_has_it(
    register_only: Any,
) -> None:
    declare()
    register_only(build_ask())
    assert start_due(NOON).run_ids == ()
    assert current().next_tick_at == NOON
    register_only(build_line())
    assert len(start_due(NOON).run_ids) == 1


@pytest.mark.parametrize(
    "broken",
    [
        {"cron": "every day"},
        {"time_zone": "Europe/Atlantis"},
        {"input": '{"total": "many"}'},
        {"input": "{"},
    ],
)
def test_broken_schedule_does_not_stop_the_rest(broken: dict[str, str]) -> None:
    """Its error is kept in its row, and it is no burden to the next pass."""
    declare()
    Schedule.objects.update(**broken)
    Schedule.objects.create(
        name="desk.good", graph_id=ASK, cron="* * * * *", next_tick_at=NOON
    )
    report = start_due(NOON)
    assert len(report.run_ids) == len(report.failed) == 1
    row = current()
    assert row.failed_count == 1
    assert row.last_error
    assert start_due(NOON).failed == ()


def test_schedule_that_was_made_by_hand_is_planned_by_the_next_pass() -> None:
    Schedule.objects.create(name=NAME, graph_id=LINE, cron="0 * * * *")
    assert start_due(NOON).run_ids == ()
    assert current().next_tick_at == NOON + timedelta(hours=1)


def test_pass_looks_at_no_more_schedules_than_its_batch(settings: Any) -> None:
    settings.STATEKNOT = {**getattr(settings, "STATEKNOT", {}), "sweep_batch": 2}
    for number in range(3):
        Schedule.objects.create(
            name=str(number), graph_id=LINE, cron="* * * * *", next_tick_at=NOON
        )
    assert [len(start_due(NOON).run_ids) for _ in range(3)] == [2, 1, 0]


def test_long_downtime_is_caught_up_at_once() -> None:
    """Every minute, down for half a year."""
    declare("* * * * *")
    start_due(NOON + timedelta(days=183))
    row = current()
    assert (row.started_count, row.skipped_count) == (1, 999)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"cron": "daily"}, "cron"),
        ({"cron": "0 6 * * *", "time_zone": "Berlin"}, "time_zone"),
        ({"cron": "0 6 * * *", "catch_up": "some"}, "catch_up"),
        ({"cron": "0 6 * * *", "catch_up_limit": 0}, "catch_up_limit"),
        ({"cron": "0 6 * * *", "overlap": "queue"}, "overlap"),
        ({"cron": "0 6 * * *", "input": {"total": float("nan")}}, "input.total"),
    ],
)
def test_declaration_that_cannot_work_is_refused(
    options: dict[str, Any], path: str
) -> None:
    with pytest.raises(StateError) as caught:
        CronSchedule("x", **options)
    assert caught.value.path == path


def test_name_of_another_graphs_schedule_is_refused() -> None:
    declare()
    with pytest.raises(ScheduleError, match="unique"):
        register(build_ask(), schedules=[CronSchedule(NAME, "0 6 * * *")])


def test_input_that_does_not_fit_the_graph_is_refused() -> None:
    schedule = CronSchedule(NAME, "0 6 * * *", input={"total": "many"})
    with pytest.raises(StateError):
        register(build_line(), schedules=[schedule])


def test_page_about_schedules_declares_one(settings: Any) -> None:
    """The how-to page runs as written, and its table names every choice."""
    page = (settings.BASE_DIR / "docs" / "how-to" / "schedules.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(compile(code, "page", "exec", dont_inherit=True), {"__name__": "page"})  # noqa: S102 - a page of ours
    ((graph_id, schedule),) = list_schedules()
    assert (graph_id, schedule.input) == ("shop.digest", {"limit": 50})
    chosen = {f.name for f in fields(schedule)} - {"name", "cron", "catch_up_limit"}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == chosen
