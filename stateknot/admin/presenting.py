"""What a run is doing, in a sentence a person reads first.

Pure wording over rows and records; the pages put it into templates.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.models import Run
    from stateknot.selectors.run_page import Standpoint

_LONGEST_MESSAGE = 300
_FRESH = timedelta(minutes=1)


def render_status(status: str, label: str) -> SafeString:
    """A status as text on a ground of its colour."""
    return format_html('<span class="sk-status sk-status-{}">{}</span>', status, label)


def shorten(identifier: Any) -> SafeString:
    """An id by its ends, the whole of it on hover and for the clipboard."""
    text = str(identifier)
    return format_html('<code title="{}">{}…{}</code>', text, text[:8], text[-6:])


def describe_run(run: Run, at: Standpoint | None) -> SafeString:
    """Where the run is, since when, and why."""
    match RunStatus(run.status):
        case RunStatus.FAILED:
            return describe_failure(run)
        case RunStatus.INTERRUPTED:
            return _describe_pause(at)
        case RunStatus.COMPLETED:
            steps = ngettext("%(n)d superstep", "%(n)d supersteps", run.steps)
            return format_html(
                _("Completed {}, after {}."),
                render_age(run.ended_at),
                steps % {"n": run.steps},
            )
        case RunStatus.CANCELLED:
            return format_html(_("Cancelled {}."), render_age(run.ended_at))
        case RunStatus.RUNNING:
            return format_html(_("Running since {}; due: {}."), *_due(run, at))
        case RunStatus.PENDING:
            text = _("Due since {}, waiting for a worker; next: {}.")
            return format_html(text, *_due(run, at))
        case _:
            return format_html("{}.", run.get_status_display().capitalize())


def describe_failure(run: Run) -> SafeString:
    """Node, superstep, age, error and attempts of a failed run."""
    error: Mapping[str, Any] = run.error or {}
    node = error.get("node") or ""
    place = format_html(_(" at <strong>{}</strong>"), node) if node else ""
    step = str(error.get("activation", "")).split(":", 1)[0]
    return format_html(
        "{}{}{}, {}: {}.{}",
        _("Failed"),
        place,
        _(" in superstep %(n)s") % {"n": step} if step else "",
        render_age(run.ended_at),
        describe_error(error),
        _attempts(error.get("attempts") or 0),
    )


def describe_error(error: Mapping[str, Any]) -> str:
    """Type and text of an error, cut where it gets long."""
    message = str(error.get("message", "")).strip().rstrip(".")
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    kind = str(error.get("type", ""))
    return f"{kind}: {message}" if message else kind


def _attempts(count: int) -> str:
    if not count:
        return ""
    return " " + ngettext("%(n)d attempt.", "%(n)d attempts.", count) % {"n": count}


def _describe_pause(at: Standpoint | None) -> SafeString:
    questions = at.questions if at else []
    if not questions:
        return format_html(_("Paused; next: {}."), _next_nodes(at))
    count = len(questions)
    text = ngettext("Waiting for {} answer", "Waiting for {} answers", count)
    asked = questions[0].asked_at
    since = format_html(_(", asked {}"), render_age(asked)) if asked else ""
    return format_html("{}{}.", format_html(text, count), since)


def _due(run: Run, at: Standpoint | None) -> tuple[SafeString, str]:
    since = run.started_at if run.status == RunStatus.RUNNING else run.woken_at
    return render_time(since or run.created_at), _next_nodes(at)


def _next_nodes(at: Standpoint | None) -> str:
    return join_names(at.record.next_nodes if at else [])


def join_names(names: list[str]) -> str:
    """Names in order, a repeated one with its count."""
    counts = Counter(names).items()
    parts = [n if count == 1 else f"{n} ({count} times)" for n, count in counts]
    return ", ".join(parts) or _("nothing")


def render_age(moment: datetime | None) -> SafeString:
    """How long ago something was, for people, with the moment for machines."""
    if moment is None:
        return SafeString(_("at an unknown time"))
    age = _("%(age)s ago") % {"age": timesince(moment, depth=1)}
    if datetime.now(UTC) - moment < _FRESH:
        age = _("just now")
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), age)


def render_time(moment: datetime) -> SafeString:
    """A moment to the second, in the current time zone."""
    local = timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S")
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), local)
