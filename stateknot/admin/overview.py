"""What stands above the list of the engine's models: what needs a person now.

Every number leads to the list of its rows. Counting is in `selectors/attention.py`, the
template is `templates/admin/stateknot/_overview.html`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from stateknot.admin.presenting import render_age
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import Run
from stateknot.pictures.charts import Column, Part, render_bar, render_columns
from stateknot.selectors.attention import (
    HOURS,
    MOST_GRAPHS,
    STALLED_AFTER,
    Age,
    Need,
    count_day,
    count_driven,
    count_need,
    count_questions,
    list_causes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from stateknot.selectors.attention import DayCount

_MINUTES = STALLED_AFTER // timedelta(minutes=1)
_ORDER = (
    *(RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED),
    *(RunStatus.WAITING, RunStatus.RUNNING, RunStatus.PENDING),
    *(RunStatus.CLOSING, RunStatus.CANCELLED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its words, and the list behind it."""

    count: int
    words: str
    url: str
    kind: str = ""
    since: SafeString | str = ""


def gather_overview(request: HttpRequest) -> dict[str, Any]:
    """The template's context: only what the user may see. At most seven queries."""
    context: dict[str, Any] = {}
    if request.user.has_perm("stateknot.view_run"):
        context |= _runs(request.user)
    if request.user.has_perm("stateknot.view_wait"):
        context["questions"] = _questions(request.user)
    return context


def _runs(user: Any) -> dict[str, Any]:
    day = count_day(user)
    driven, holders = count_driven(user)
    return {
        "needs": [_need(need, user) for need in Need],
        "causes": [
            Figure(
                count=cause.count,
                words=" · ".join(
                    filter(None, (cause.graph_id, cause.node, cause.code))
                ),
                url=_list(
                    "run",
                    needs=Need.FAILED,
                    graph_id=cause.graph_id,
                    failed_node=cause.node,
                    error_code=cause.code,
                ),
                since=render_age(cause.since),
            )
            for cause in list_causes(user)
        ],
        "driven": driven,
        "holders": holders,
        "has_day": bool(day),
        "columns": _columns(day),
        "statuses": _statuses(day),
        "graphs": _graphs(day),
    }


def _need(need: Need, user: Any) -> Figure:
    found = count_need(need, user)
    words = {
        Need.FAILED: _("failed, to be repaired or given up"),
        Need.STALLED: _("due for over %(n)d minutes, driven by nobody")
        % {"n": _MINUTES},
        Need.CLOSING: _("closing, their usage not yet known"),
    }
    return Figure(
        count=found.count,
        words=words[need],
        url=_list("run", needs=need),
        kind=need,
        since=render_age(found.since) if found.since else "",
    )


def _questions(user: Any) -> list[Figure]:
    counts = count_questions(user)
    words = {
        None: _("open questions"),
        Age.OVER_HOUR: _("older than an hour"),
        Age.OVER_DAY: _("older than a day"),
        Age.OVER_WEEK: _("older than a week"),
    }
    return [
        Figure(
            count=found.count,
            words=words[age],
            url=_list("wait", status__exact="open", age=age or ""),
            kind="" if age else "interrupted",
            since=render_age(found.since) if found.since else "",
        )
        for age, found in counts.items()
    ]


def _list(model: str, **filters: str) -> str:
    """The address of a list, with the filters that say something."""
    query = urlencode({name: value for name, value in filters.items() if value})
    return f"{reverse(f'admin:stateknot_{model}_changelist')}?{query}"


def _columns(day: list[DayCount]) -> SafeString:
    counts: Counter[tuple[int, str]] = Counter()
    for row in day:
        counts[row.hour, row.status] += row.count
    now = datetime.now(UTC)
    columns = []
    for hour in reversed(range(HOURS)):
        begin = timezone.localtime(now - timedelta(hours=hour + 1))
        parts = _parts({s: counts[hour, s] for s in _ORDER})
        columns.append(Column(label=f"{begin:%H:%M}", parts=parts))
    title = _("Runs of the last 24 hours by the hour in which they were admitted")
    return render_columns(columns, title=title, key="sk-day")


def _parts(counts: dict[RunStatus, int]) -> list[Part]:
    return [
        Part(kind=status.value, label=str(Run.Status(status).label), count=count)
        for status, count in counts.items()
    ]


def _sum(rows: Iterable[DayCount]) -> dict[RunStatus, int]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.status] += row.count
    return {status: counts[status] for status in _ORDER}


def _statuses(day: list[DayCount]) -> list[Figure]:
    return [
        Figure(
            count=count,
            words=str(Run.Status(status).label),
            url=_list("run", status__exact=status, age=Age.DAY),
            kind=status,
        )
        for status, count in _sum(day).items()
        if count
    ]


def _graphs(day: list[DayCount]) -> list[tuple[Figure, SafeString]]:
    """Graphs with the most runs, each with its bar."""
    totals: Counter[str] = Counter()
    for row in day:
        totals[row.graph_id] += row.count
    most = max(totals.values(), default=0)
    return [
        (
            Figure(
                count=count,
                words=graph,
                url=_list("run", graph_id=graph, age=Age.DAY),
            ),
            render_bar(
                _parts(_sum(row for row in day if row.graph_id == graph)),
                most=most,
                title=_("Runs of %(graph)s by status") % {"graph": graph},
                key=f"sk-graph-{place}",
            ),
        )
        for place, (graph, count) in enumerate(totals.most_common(MOST_GRAPHS))
    ]
