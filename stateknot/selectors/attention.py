"""What needs a person now: the counts of an overview and the rows behind each.

A count and its list are one queryset, so they never disagree. Runs within other runs
are left out: who acts, acts on the root. Each function counts what its `user` may see;
None, the project's own code, sees all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Min,
    OuterRef,
    Q,
    When,
)
from django.db.models.functions import Now

from stateknot.conf import get_settings
from stateknot.kernel.vocabulary import RunStatus, WaitKind, WaitStatus
from stateknot.models import JournalEvent, Run, Wait
from stateknot.selectors.access import limit

if TYPE_CHECKING:
    from stateknot.models.querysets import RunQuerySet

STALLED_AFTER = timedelta(minutes=2)
"""How long a due run may lie before somebody should look: several leases, sweeps and
wake-ups fit into it."""
HOURS = 24
MOST_GRAPHS = 12
MOST_CAUSES = 10


class Need(StrEnum):
    """Why a run needs a person."""

    FAILED = "failed"
    STALLED = "stalled"
    CLOSING = "closing"


class Age(StrEnum):
    """Bounds of an age: up to one, or beyond it."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    OVER_HOUR = "over-hour"
    OVER_DAY = "over-day"
    OVER_WEEK = "over-week"


SPANS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def match_age(age: Age, column: str) -> Q:
    """Rows whose moment in `column` is of that age, by this process's clock."""
    is_over, _, span = age.rpartition("-")
    edge = datetime.now(UTC) - SPANS[span]
    return Q(**{f"{column}__{'lt' if is_over else 'gte'}": edge})


def match_need(need: Need) -> Q:
    """Runs that need a person for that reason.

    A failed run counts until a newer one stands on its thread; a stalled one is due,
    under no live lease, and its journal has been silent for STALLED_AFTER.
    """
    roots = Q(parent_run=None, namespace="")
    match need:
        case Need.FAILED:
            is_current = Q(thread__current_run=F("id"))
            return roots & is_current & Q(status=RunStatus.FAILED.value)
        case Need.CLOSING:
            return roots & Q(status=RunStatus.CLOSING.value)
        case Need.STALLED:
            return roots & _is_stalled()


def _is_stalled() -> Q:
    edge = Now() - STALLED_AFTER
    newest = JournalEvent.objects.filter(
        run=OuterRef("pk"), number=OuterRef("next_journal") - 1, recorded_at__gte=edge
    )
    is_due = Q(status__in=[RunStatus.PENDING.value, RunStatus.RUNNING.value])
    is_due |= Q(status=RunStatus.WAITING.value, wake_at__lt=edge)
    is_free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=edge)
    is_asked_to_stop = Q(cancel_requested_at__isnull=False)
    return Q(is_due, is_free, ~is_asked_to_stop, ~Exists(newest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many rows need somebody, and since when the oldest does."""

    count: int
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Failed runs of one graph, node and error code."""

    graph_id: str
    node: str
    code: str
    count: int
    since: datetime


def count_need(need: Need, user: Any = None) -> Waiting:
    """How many runs need a person for that reason. One query."""
    moment = "ended_at" if need is Need.FAILED else "created_at"
    found = _runs(user).filter(match_need(need))
    return Waiting(**found.aggregate(count=Count("id"), since=Min(moment)))


def list_causes(user: Any = None) -> list[Cause]:
    """What failed runs that need a person failed of, the most frequent first."""
    rows = _runs(user).filter(match_need(Need.FAILED)).order_by()
    grouped = rows.values_list("graph_id", "failed_node", "error_code")
    counted = grouped.annotate(n=Count("id"), since=Min("ended_at")).order_by("-n")
    return [
        Cause(graph_id=graph, node=node, code=code, count=n, since=since)
        for graph, node, code, n, since in counted[:MOST_CAUSES]
    ]


def count_questions(user: Any = None) -> dict[Age | None, Waiting]:
    """Open questions to people: all of them (None), and those beyond each age."""
    rows = limit(Wait.objects.using(get_settings().database), user).filter(
        kind=WaitKind.INTERRUPT.value, status=WaitStatus.OPEN.value
    )
    over = (Age.OVER_HOUR, Age.OVER_DAY, Age.OVER_WEEK)
    counts = {age.name: Count("id", match_age(age, "asked_at")) for age in over}
    found = rows.aggregate(every=Count("id"), since=Min("asked_at"), **counts)
    every: dict[Age | None, Waiting] = {
        None: Waiting(count=found["every"], since=found["since"])
    }
    return every | {age: Waiting(count=found[age.name], since=None) for age in over}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """Runs admitted in one hour of the last day; `hour` 0 is the one that ends now."""

    graph_id: str
    status: str
    hour: int
    count: int


def count_day(user: Any = None) -> list[DayCount]:
    """Root runs of the last day by graph, status and hour. One query."""
    now = datetime.now(UTC)
    edges = [(hour, now - timedelta(hours=hour + 1)) for hour in range(HOURS)]
    hour = Case(
        *(When(created_at__gte=edge, then=number) for number, edge in edges),
        default=HOURS - 1,
        output_field=IntegerField(),
    )
    roots = _runs(user).filter(parent_run=None).order_by()
    rows = roots.filter(match_age(Age.DAY, "created_at"))
    grouped = rows.annotate(hour=hour).values_list("graph_id", "status", "hour")
    return [
        DayCount(graph_id=graph, status=status, hour=hour, count=count)
        for graph, status, hour, count in grouped.annotate(count=Count("id"))
    ]


def count_driven(user: Any = None) -> tuple[int, int]:
    """How many runs are driven now, and by how many workers or callers."""
    found: dict[str, Any] = (
        _runs(user)
        .driven()
        .aggregate(runs=Count("id"), holders=Count("holder", distinct=True))
    )
    return found["runs"], found["holders"]


def _runs(user: Any) -> RunQuerySet:
    rows: RunQuerySet = limit(Run.objects.using(get_settings().database), user)
    return rows
