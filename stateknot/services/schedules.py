"""Schedules: what code declares is kept in rows, and ticks that are due start runs.

A tick belongs to whoever holds its schedule's row: the cursor moves on in the same
transaction that starts the run, and the run's idempotency key is made of schedule and
tick, so that any number of sweeps start it once. Read `stateknot/runtime/cadence.py`
for when a tick is due.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.db.models import Q

from stateknot.conf import get_settings
from stateknot.errors import ScheduleError
from stateknot.kernel.limits import MAXIMUM_CATCH_UP, MAXIMUM_ERROR_TEXT
from stateknot.kernel.profile import encode
from stateknot.models import Schedule
from stateknot.models.runs import HOLDING
from stateknot.registry import list_graphs, list_schedules
from stateknot.runtime.cadence import Cadence
from stateknot.services.runs import start_run
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from uuid import UUID

    from stateknot.models import Run
    from stateknot.runtime.schedules import CronSchedule

logger = logging.getLogger("stateknot")

ACTOR = "(schedule)"
"""The actor of a run that nobody started by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TickReport:
    """What a pass over the schedules did: the runs it started, and what failed."""

    run_ids: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def store_schedules() -> int:
    """Make a row of each schedule that this process's code declares; how many changed.

    A row is changed only where the declaration is another than the one that the row
    was last made from, so what an operator edits stays until the code changes. Rows
    that no code declares are left alone. Transaction: its own. Idempotent.
    """
    using = get_settings().database
    now = DjangoCheckpointer().now()
    with transaction.atomic(using=using):
        return sum(
            _store(graph_id, declared, now, using)
            for graph_id, declared in list_schedules()
        )


def _store(graph_id: str, schedule: CronSchedule, now: datetime, using: str) -> bool:
    columns = schedule.columns(graph_id)
    declared = encode(columns).decode()
    columns["input"] = encode(columns["input"]).decode()
    rows = Schedule.objects.using(using)
    row, is_new = rows.select_for_update().get_or_create(
        name=schedule.name, defaults={**columns, "declared": declared}
    )
    if not is_new:
        if row.declared == declared:
            return False
        for name, value in columns.items():
            setattr(row, name, value)
        row.declared = declared
    plan_from(row, now)
    row.save(using=using)
    return True


def plan_from(schedule: Schedule, now: datetime) -> None:
    """Let a schedule begin with its first tick behind `now`; nothing is saved.

    For one that is new or was changed: what was due under its old terms is no tick of
    its new ones. Raises ScheduleError.
    """
    cadence = Cadence(schedule.cron, schedule.time_zone)
    schedule.next_tick_at = cadence.next_after(now)
    schedule.held_tick_at = None
    schedule.last_error = ""


def start_due(now: datetime | None = None) -> TickReport:
    """Start what is due at `now` (the database's clock), of `sweep_batch` schedules.

    A schedule whose graph this process has no code for is left for one that has it.
    Transaction: one per schedule. Safe to run twice at once.
    """
    settings = get_settings()
    using = settings.database
    moment = now or DjangoCheckpointer().now()
    rows = Schedule.objects.using(using).filter(_due(moment)).order_by("next_tick_at")
    run_ids: list[str] = []
    failed: list[str] = []
    for schedule_id in list(rows.values_list("id", flat=True)[: settings.sweep_batch]):
        try:
            with transaction.atomic(using=using):
                runs, is_failed = _tick_locked(schedule_id, moment, using)
        except DatabaseError:
            # The rest may do better; this one is looked at again by the next pass.
            logger.exception("schedule not looked at", extra={"id": str(schedule_id)})
            runs, is_failed = [], True
        run_ids += runs
        failed += [str(schedule_id)] if is_failed else []
    return TickReport(run_ids=tuple(run_ids), failed=tuple(failed))


def _due(now: datetime) -> Q:
    """Enabled schedules of known graphs that have something to do."""
    graphs = {graph.graph_id for graph in list_graphs()}
    is_free = Q(last_run=None) | ~Q(last_run__status__in=HOLDING)
    is_unplanned = Q(next_tick_at=None, last_error="")
    return Q(is_enabled=True, graph_id__in=graphs) & (
        Q(next_tick_at__lte=now) | is_unplanned | (Q(held_tick_at__lte=now) & is_free)
    )


def _tick_locked(
    schedule_id: UUID, now: datetime, using: str
) -> tuple[list[str], bool]:
    """Do what one schedule has to do; nothing where another pass does it."""
    rows = Schedule.objects.using(using).filter(id=schedule_id)
    row = rows.select_for_update(skip_locked=True, of=("self",)).first()
    if row is None or not rows.filter(_due(now)).exists():
        return [], False
    failures = row.failed_count
    try:
        started = _Ticking(row, now, using).run()
    except ScheduleError as error:
        # A row that cannot be read rests until somebody edits it.
        logger.warning("schedule %s: %s", row.name, error)
        row.next_tick_at, started = None, []
        _note_failure(row, error)
    row.save(using=using)
    return [str(run.id) for run in started], row.failed_count > failures


def _note_failure(row: Schedule, error: Exception) -> None:
    """Keep what stopped a tick where an operator sees it."""
    row.failed_count += 1
    row.last_error = f"{type(error).__name__}: {error}"[:MAXIMUM_ERROR_TEXT]


class _Ticking:
    """One pass over one locked row; `run` moves the cursor and gives what started."""

    def __init__(self, row: Schedule, now: datetime, using: str) -> None:
        self._row, self._now, self._using = row, now, using
        self._cadence = Cadence(row.cron, row.time_zone)

    def run(self) -> list[Run]:
        row = self._row
        held, row.held_tick_at = row.held_tick_at, None
        first = row.next_tick_at
        due = self._choose(first) if first is not None and first <= self._now else ()
        if first is None or first <= self._now:
            row.next_tick_at = self._cadence.next_after(self._now)
        ticks = [held, *due] if held else list(due)
        runs = [run for tick in ticks if (run := self._start_or_hold(tick))]
        row.started_count += len(runs)
        return runs

    def _choose(self, first: datetime) -> tuple[datetime, ...]:
        """Of the ticks that are due, those that are to be run; counts the others."""
        row, now = self._row, self._now
        wants_all = row.catch_up == Schedule.CatchUp.ALL
        ticks = self._cadence.newest(first, now, row.catch_up_limit if wants_all else 1)
        row.last_tick_at = ticks[-1] if ticks else first
        if row.catch_up == Schedule.CatchUp.SKIP:
            grace = timedelta(seconds=get_settings().schedule_grace_seconds)
            ticks = tuple(tick for tick in ticks if now - tick <= grace)
        number = self._cadence.count(first, now, MAXIMUM_CATCH_UP)
        row.skipped_count += max(number - len(ticks), 0)
        return ticks

    def _start_or_hold(self, tick: datetime) -> Run | None:
        row = self._row
        if row.overlap == Schedule.Overlap.ALLOW or not self._is_busy():
            return self._start(tick)
        if row.overlap == Schedule.Overlap.ENQUEUE and row.held_tick_at is None:
            row.held_tick_at = tick
        else:
            row.skipped_count += 1
        return None

    def _is_busy(self) -> bool:
        last: Run | None = self._row.last_run
        return last is not None and last.status in HOLDING

    def _start(self, tick: datetime) -> Run | None:
        row = self._row
        name = f"{row.name}/{tick.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        try:
            with transaction.atomic(using=self._using):
                run = start_run(
                    row.graph_id,
                    json.loads(row.input),
                    thread_id=name,
                    idempotency_key=f"schedule {name}",
                    metadata={"schedule": row.name},
                    actor=ACTOR,
                )
        except DatabaseError:
            raise
        except Exception as error:
            logger.exception("tick not started", extra={"schedule": row.name})
            _note_failure(row, error)
            return None
        row.last_run, row.last_error = run, ""
        return run
