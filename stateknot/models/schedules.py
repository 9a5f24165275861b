"""Schedules: when a graph is started, and what became of the ticks so far.

The row decides, whoever declared it; `services/schedules.py` writes it.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from stateknot.kernel.limits import MAXIMUM_SCHEDULE_NAME
from stateknot.models.moments import MomentField


class Schedule(models.Model):
    """A cron expression that starts runs of a graph.

    `next_tick_at` is the oldest tick that nothing was done about yet, `held_tick_at`
    one that waits for the end of `last_run`. `input` is JSON text. `declared` is what
    code last declared, as JSON text; empty for a schedule that was made by hand.
    """

    class CatchUp(models.TextChoices):
        """What is done with missed ticks."""

        SKIP = "skip", _("run none of them")
        LAST = "last", _("run the last one")
        ALL = "all", _("run the newest ones, up to the limit")

    class Overlap(models.TextChoices):
        """What is done with a tick while an earlier run has not ended."""

        SKIP = "skip", _("skip it")
        ENQUEUE = "enqueue", _("run it afterwards, one at most")
        ALLOW = "allow", _("run it beside the other")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(_("name"), max_length=MAXIMUM_SCHEDULE_NAME, unique=True)
    graph_id = models.CharField(_("graph"), max_length=128)
    cron = models.CharField(_("cron expression"), max_length=255)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    input = models.TextField(_("input"), default="{}")
    catch_up = models.CharField(
        _("missed ticks"), max_length=4, choices=CatchUp.choices, default=CatchUp.LAST
    )
    catch_up_limit = models.IntegerField(_("limit of missed ticks"), default=10)
    overlap = models.CharField(
        _("overlap"), max_length=7, choices=Overlap.choices, default=Overlap.SKIP
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)
    declared = models.TextField(default="", blank=True, editable=False)
    next_tick_at = MomentField(_("next tick"), null=True, blank=True)
    held_tick_at = MomentField(_("held tick"), null=True, blank=True)
    last_tick_at = MomentField(_("last tick"), null=True, blank=True)
    last_run = models.ForeignKey(
        "stateknot.Run",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("last run"),
    )
    started_count = models.BigIntegerField(_("started"), default=0)
    skipped_count = models.BigIntegerField(_("skipped"), default=0)
    failed_count = models.BigIntegerField(_("not started"), default=0)
    last_error = models.TextField(_("last error"), default="", blank=True)
    created_at = MomentField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        indexes = [
            models.Index(
                fields=["next_tick_at"],
                condition=models.Q(is_enabled=True),
                name="stateknot_schedule_due",
            ),
        ]

    def __str__(self) -> str:
        return self.name
