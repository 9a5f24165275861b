"""When a cron expression is due: wall clock times of a zone, as moments of UTC.

Knows no rows and no clock; croniter only says which wall clock times match, since its
own idea of a clock change would fire a daily job twice. Read
`stateknot/services/schedules.py` next.

Note [Ticks over a clock change]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Two readers expect different things when an hour is skipped or comes twice. "At 02:30"
means once a day: a time that does not exist is due as soon as the gap is over, one that
comes twice is due the first time. "Every 10 minutes" means that time goes on: in the
hour that comes twice it is due in both, and in one that does not exist never. As in
Vixie cron, an hour field that begins with `*` is of the second kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stateknot.errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIELDS = 5
_HOUR = 1
_SECOND = timedelta(seconds=1)
# croniter's own extensions that are another moment each time they are read.
_RANDOM = re.compile(r"(?<![a-z])[rh](?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cadence:
    """A cron expression of five fields in the zone whose wall clock it reads.

    Raises ScheduleError for an expression that cannot be read or is never due, and for
    an unknown zone; its `path` is `cron` or `time_zone`.
    """

    cron: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        """See the class."""
        _require_expression(self.cron)
        _require_zone(self.zone)

    def next_after(self, moment: datetime) -> datetime | None:
        """The first tick behind `moment` (aware), in UTC; None if there is none."""
        keeps_time = self.cron.split()[_HOUR].startswith("*")
        after = moment.astimezone(UTC)
        return self._next_elapsed(after) if keeps_time else self._next_daily(after)

    def ticks_from(self, first: datetime) -> Iterator[datetime]:
        """Every tick from `first` on, which is one itself."""
        tick: datetime | None = first
        while tick is not None:
            yield tick
            tick = self.next_after(tick)

    def newest(
        self, first: datetime, until: datetime, count: int
    ) -> tuple[datetime, ...]:
        """The last `count` ticks from `first` (a tick) up to `until`, oldest first.

        The time it takes depends on `count`, not on how long ago `first` was.
        """
        span = timedelta(minutes=count)
        while True:
            start: datetime | None = first
            if until - span > first:
                start = self.next_after(until - span)
            found = () if start is None else tuple(self._up_to(start, until))
            if len(found) >= count or until - span <= first:
                return found[-count:]
            span *= 2

    def count(self, first: datetime, until: datetime, at_most: int) -> int:
        """How many ticks there are from `first` (a tick) up to `until`."""
        return sum(1 for _ in islice(self._up_to(first, until), at_most))

    def _up_to(self, first: datetime, until: datetime) -> Iterator[datetime]:
        return takewhile(lambda tick: tick <= until, self.ticks_from(first))

    def _next_daily(self, after: datetime) -> datetime | None:
        """Each matching wall clock time once. See Note [Ticks over a clock change]."""
        zone = ZoneInfo(self.zone)
        for wall in _matches(self.cron, _naive(after.astimezone(zone))):
            moment = _first_moment(wall, zone)
            if moment > after:
                return moment
        return None

    def _next_elapsed(self, after: datetime) -> datetime | None:
        """Each time that the wall clock shows a matching time."""
        zone = ZoneInfo(self.zone)
        start, before = after, timedelta()
        while True:
            offset = _offset(start, zone)
            wall = next(_matches(self.cron, _naive(start - before) + offset), None)
            if wall is None:
                return None
            moment = (wall - offset).replace(tzinfo=UTC)
            if _offset(moment, zone) == offset:
                return moment
            # Go on from the clock change that lies between, itself included.
            start, before = _clock_change(start, moment, zone), _SECOND


def _matches(cron: str, after: datetime) -> Iterator[datetime]:
    """The wall clock times that match, behind `after`; all naive."""
    # Imported late: it takes longer to load than all of `import stateknot`.
    from croniter import CroniterBadDateError, croniter

    found = croniter(cron, after)
    while True:
        try:
            yield found.get_next(datetime)
        except CroniterBadDateError:
            return


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _first_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clock first shows `wall`; the end of the gap if it never does."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if _naive(moment.astimezone(zone)) == wall:
        return moment
    # Inside a gap the two folds are read with the offsets before and behind it.
    earlier = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _clock_change(earlier, moment, zone)


def _clock_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime:
    """The first second of another offset than the one at `start`; `end` has one."""
    offset = _offset(start, zone)
    while end - start > _SECOND:
        middle = (start + (end - start) / 2).replace(microsecond=0)
        middle = max(middle, start + _SECOND)
        if _offset(middle, zone) == offset:
            start = middle
        else:
            end = middle
    return end


def _require_expression(cron: str) -> None:
    from croniter import croniter

    fields = cron.split()
    is_read = len(fields) == _FIELDS and not _RANDOM.search(cron)
    if not is_read or not croniter.is_valid(cron):
        raise ScheduleError(
            f"{cron!r} is no cron expression; give five fields (minute, hour, day of "
            "month, month, day of week), such as '0 6 * * 1-5'",
            path="cron",
        )
    if next(_matches(cron, datetime(2000, 1, 1)), None) is None:  # noqa: DTZ001
        raise ScheduleError(
            f"{cron!r} is never due: no month has that day", path="cron"
        )


def _require_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            f"{name!r} is no time zone; give a name of the IANA database, such as "
            "'Europe/Berlin'",
            path="time_zone",
        ) from error
