"""When a cron expression is due, over the clock changes of several zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from stateknot.errors import ScheduleError
from stateknot.runtime.cadence import Cadence

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    """A moment of UTC in 2026, such as "03-28 12:00"."""
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def ticks(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next ticks as moments of UTC: day and time."""
    cadence = Cadence(cron, zone)
    first = cadence.next_after(at(after))
    assert first is not None
    return [f"{t:%d %H:%M}" for t in islice(cadence.ticks_from(first), count)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("03-27 12:00", ["28 05:00", "29 04:00", "30 04:00"]),
        ("10-23 12:00", ["24 04:00", "25 05:00", "26 05:00"]),
    ],
)
def test_tm_01_daily_tick_keeps_its_local_time(after: str, expected: list[str]) -> None:
    """TM-01: daily 06:00 in Berlin, across the change in spring and in autumn."""
    assert ticks("0 6 * * *", BERLIN, after, 3) == expected


def test_tm_01_daily_tick_in_the_gap_is_due_when_it_is_over() -> None:
    """TM-01: 02:30 does not exist on that day; the tick is not lost."""
    expected = ["28 01:30", "29 01:00", "30 00:30"]
    assert ticks("30 2 * * *", BERLIN, "03-27 12:00", 3) == expected


def test_tm_01_daily_tick_in_the_hour_that_comes_twice_is_due_once() -> None:
    expected = ["24 00:30", "25 00:30", "26 01:30"]
    assert ticks("30 2 * * *", BERLIN, "10-23 12:00", 3) == expected


def test_daily_tick_is_not_due_again_in_the_second_pass_of_the_hour() -> None:
    """A look between the two 02:30 of that night finds the next day's."""
    assert ticks("30 2 * * *", BERLIN, "10-25 01:10", 1) == ["26 01:30"]


def test_two_ticks_in_the_gap_are_one() -> None:
    assert ticks("15,45 2 * * *", BERLIN, "03-29 00:00", 2) == ["29 01:00", "30 00:15"]


@pytest.mark.parametrize(
    ("cron", "zone", "after", "minutes"),
    [
        ("*/30 * * * *", BERLIN, "03-28 22:00", 30),
        ("*/30 * * * *", BERLIN, "10-24 22:00", 30),
        ("*/15 * * * *", "Australia/Lord_Howe", "04-04 13:00", 15),
        ("*/15 * * * *", "Australia/Lord_Howe", "10-03 13:00", 15),
        ("0 * * * *", "America/New_York", "11-01 03:00", 60),
    ],
)
def test_elapsed_cadence_goes_on_over_a_clock_change(
    cron: str, zone: str, after: str, minutes: int
) -> None:
    """See Note [Ticks over a clock change]: no pause and no burst."""
    cadence = Cadence(cron, zone)
    step = timedelta(minutes=minutes)
    found = list(islice(cadence.ticks_from(at(after)), 12))
    assert found == [at(after) + step * n for n in range(12)]


def test_zone_without_whole_hours_is_read_on_its_own_clock() -> None:
    assert ticks("0 */12 * * *", "Asia/Kolkata", "01-01 00:00", 2) == [
        "01 06:30",
        "01 18:30",
    ]


def test_newest_ticks_are_found_without_counting_those_before() -> None:
    cadence = Cadence("*/10 * * * *")
    first, now = at("01-01 00:00"), at("11-30 12:05")
    assert cadence.newest(first, now, 3) == (
        at("11-30 11:40"),
        at("11-30 11:50"),
        at("11-30 12:00"),
    )
    assert cadence.count(first, now, 1_000) == 1_000


def test_newest_ticks_are_no_older_than_the_first() -> None:
    cadence = Cadence("0 6 * * *")
    first, now = at("01-01 06:00"), at("01-03 05:00")
    assert cadence.newest(first, now, 10) == (first, at("01-02 06:00"))
    assert cadence.count(first, now, 1_000) == 2


@pytest.mark.parametrize(
    "cron", ["", "0 6 * *", "61 * * * *", "* * * * * *", "@daily", "R 6 * * *", "x"]
)
def test_expression_that_cannot_be_read_is_refused(cron: str) -> None:
    with pytest.raises(ScheduleError, match="five fields") as caught:
        Cadence(cron)
    assert caught.value.path == "cron"


def test_expression_that_is_never_due_is_refused() -> None:
    with pytest.raises(ScheduleError, match="never due"):
        Cadence("0 0 30 2 *")


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc", "Europe"])
def test_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(ScheduleError, match="IANA") as caught:
        Cadence("0 6 * * *", zone)
    assert caught.value.path == "time_zone"
