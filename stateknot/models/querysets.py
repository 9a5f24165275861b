"""Queries that more than one caller asks of runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Now

from stateknot.kernel.vocabulary import HOLDING_STATUSES

if TYPE_CHECKING:
    from typing import Self

    from stateknot.models.runs import Run  # noqa: F401 - named in the base's type


class RunQuerySet(models.QuerySet["Run"]):
    """Runs by what may be done with them now; times are the database's."""

    def due(self) -> Self:
        """Runs that have something to drive now, whoever holds them."""
        return self.filter(
            models.Q(status__in=["pending", "running"])
            | models.Q(status="waiting", wake_at__lte=Now()),
            cancel_requested_at=None,
            queued_input=None,
        )

    def runnable(self) -> Self:
        """Runs that a worker may claim now: due, and under no live lease."""
        return self.due().filter(
            models.Q(lease_expires_at=None) | models.Q(lease_expires_at__lt=Now())
        )

    def driven(self) -> Self:
        """Runs under a live lease that take a slot; a child goes in its parent's."""
        return self.filter(
            status__in=["pending", "running", "waiting"],
            lease_expires_at__gt=Now(),
            parent_run=None,
        )

    def in_line(self) -> Self:
        """Runs that wait for a worker, the next one first."""
        waiting = self.runnable().filter(status="pending", parent_run=None)
        return waiting.order_by("-priority", "created_at")

    def unwoken(self, grace: timedelta) -> Self:
        """Runnable runs whose last wake-up, if any, is older than `grace`.

        A child run is not woken: its parent's drive takes it up.
        """
        return self.runnable()._last_woken_before(grace)

    def overdue_to_cancel(self) -> Self:
        """Runs that are to be cancelled and whose driver did not do it in its lease."""
        return self.filter(
            models.Q(lease_expires_at=None) | models.Q(lease_expires_at__lt=Now()),
            parent_run=None,
            status__in=[str(status) for status in HOLDING_STATUSES],
            cancel_requested_at__isnull=False,
        )

    def closing(self, grace: timedelta) -> Self:
        """Runs whose usage was not known when last asked, longer ago than `grace`."""
        return self.filter(status="closing")._last_woken_before(grace)

    def _last_woken_before(self, grace: timedelta) -> Self:
        return self.filter(
            models.Q(parent_run=None),
            models.Q(woken_at=None) | models.Q(woken_at__lt=Now() - grace),
        )
