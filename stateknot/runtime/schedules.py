"""A schedule as its author declares it, beside the graph that it starts.

A value only: `stateknot/services/schedules.py` keeps the rows that are acted on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stateknot.errors import ScheduleError
from stateknot.kernel.limits import MAXIMUM_CATCH_UP, MAXIMUM_SCHEDULE_NAME
from stateknot.kernel.outcome import to_json_value
from stateknot.runtime.cadence import Cadence

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import JsonValue


class CatchUp(StrEnum):
    """What is done with ticks that were missed while nobody swept."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """What is done with a tick while the run of an earlier one has not ended."""

    SKIP = "skip"
    ENQUEUE = "enqueue"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Starts a graph whenever `cron` is due on the wall clock of `time_zone`.

    `name` is unique in the project. `input` is the state that each run starts from.
    `catch_up`: of missed ticks run none ("skip"), the last one, or "all" up to the
    newest `catch_up_limit`. `overlap`: while a run of the schedule has not ended, a
    tick is skipped, kept until it has ("enqueue"; one at most), or started beside it
    ("allow"). Raises ScheduleError, or SerializationError for the input.
    """

    name: str
    cron: str
    time_zone: str = "UTC"
    input: Any = field(default_factory=dict)
    catch_up: CatchUp | str = CatchUp.LAST
    catch_up_limit: int = 10
    overlap: Overlap | str = Overlap.SKIP
    is_enabled: bool = True

    def __post_init__(self) -> None:
        """See the class."""
        if not 0 < len(self.name) <= MAXIMUM_SCHEDULE_NAME:
            raise ScheduleError(
                f"a schedule's name has {len(self.name)} characters; use 1 to "
                f"{MAXIMUM_SCHEDULE_NAME}",
                path="name",
            )
        to_json_value(self.name, "name")
        Cadence(self.cron, self.time_zone)
        _require_one_of(CatchUp, self.catch_up, "catch_up")
        _require_one_of(Overlap, self.overlap, "overlap")
        if not 0 < self.catch_up_limit <= MAXIMUM_CATCH_UP:
            raise ScheduleError(
                f"catch_up_limit is {self.catch_up_limit}; use 1 to {MAXIMUM_CATCH_UP}",
                path="catch_up_limit",
            )
        to_json_value(self.input, "input")

    def columns(self, graph_id: str) -> dict[str, JsonValue]:
        """The row's columns that code declares; equal for equal declarations."""
        return {
            "graph_id": graph_id,
            "cron": self.cron,
            "time_zone": self.time_zone,
            "input": to_json_value(self.input, "input"),
            "catch_up": str(self.catch_up),
            "catch_up_limit": self.catch_up_limit,
            "overlap": str(self.overlap),
            "is_enabled": self.is_enabled,
        }


def _require_one_of(kind: type[StrEnum], value: str, name: str) -> None:
    if value not in list(kind):
        known = ", ".join(repr(str(member)) for member in kind)
        raise ScheduleError(f"{name} is {value!r}; use {known}", path=name)
