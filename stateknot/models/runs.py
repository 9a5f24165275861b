"""Threads and runs: the rows that workers and operators act on.

A run's row is the truth about it: status, head, lease and fence. See Note [One run
holds a thread].

Note [One run holds a thread]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Two runs on one thread would extend the same head, and the history would fork unseen. So
the database itself admits one run per thread and namespace in a holding status; a start
that loses the race fails on the constraint, not on a check that ran before it.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from stateknot.kernel.vocabulary import HOLDING_STATUSES, RunStatus
from stateknot.models.moments import MomentField
from stateknot.models.querysets import RunQuerySet

HOLDING = [str(status) for status in HOLDING_STATUSES]


class Thread(models.Model):
    """A lineage of checkpoints under one id of the project's own choice."""

    id = models.UUIDField(primary_key=True, editable=False)
    key = models.CharField(_("thread id"), max_length=255, unique=True)
    graph_id = models.CharField(_("graph"), max_length=128)
    current_run = models.ForeignKey(
        "stateknot.Run",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="current_of",
        verbose_name=_("current run"),
    )
    created_at = MomentField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("thread")
        verbose_name_plural = _("threads")
        indexes = [
            models.Index(
                fields=["graph_id", "-created_at"], name="stateknot_thread_graph"
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Run(models.Model):
    """One admission on a thread, to its end."""

    class Status(models.TextChoices):
        """The statuses of the kernel, with names for people."""

        PENDING = RunStatus.PENDING.value, _("pending")
        RUNNING = RunStatus.RUNNING.value, _("running")
        WAITING = RunStatus.WAITING.value, _("waiting")
        INTERRUPTED = RunStatus.INTERRUPTED.value, _("interrupted")
        CLOSING = RunStatus.CLOSING.value, _("closing")
        COMPLETED = RunStatus.COMPLETED.value, _("completed")
        FAILED = RunStatus.FAILED.value, _("failed")
        CANCELLED = RunStatus.CANCELLED.value, _("cancelled")

    id = models.UUIDField(primary_key=True, editable=False)
    thread = models.ForeignKey(
        Thread, models.CASCADE, related_name="runs", verbose_name=_("thread")
    )
    revision = models.ForeignKey(
        "stateknot.GraphRevision",
        models.PROTECT,
        related_name="runs",
        verbose_name=_("revision"),
    )
    graph_id = models.CharField(_("graph"), max_length=128)
    namespace = models.CharField(_("namespace"), max_length=512, blank=True, default="")
    status = models.CharField(_("status"), max_length=12, choices=Status.choices)
    head_id = models.UUIDField(_("head"))
    sequence = models.BigIntegerField(_("sequence"))
    lineage = models.BigIntegerField(_("lineage"))
    steps = models.BigIntegerField(_("supersteps"), default=0)
    active_seconds = models.FloatField(_("driven for (s)"), default=0.0)
    step_limit = models.BigIntegerField(_("step limit"), null=True, blank=True)
    epoch = models.BigIntegerField(_("epoch"), default=0)
    lost_claims = models.IntegerField(_("workers lost in a row"), default=0)
    lost_head_id = models.UUIDField(null=True, blank=True, editable=False)
    holder = models.CharField(_("holder"), max_length=200, blank=True, default="")
    lease_expires_at = MomentField(_("lease until"), null=True, blank=True)
    wake_at = MomentField(_("due"), null=True, blank=True)
    woken_at = MomentField(_("last woken"), null=True, blank=True)
    next_journal = models.BigIntegerField(_("journal rows"), default=0)
    event_count = models.BigIntegerField(_("events"), default=0)
    priority = models.IntegerField(_("priority"), default=0)
    error = models.JSONField(_("error"), null=True, blank=True)
    error_code = models.CharField(
        _("error code"), max_length=128, blank=True, default=""
    )
    failed_node = models.CharField(
        _("failed node"), max_length=128, blank=True, default=""
    )
    output = models.BinaryField(_("output"), null=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    actor = models.CharField(_("started by"), max_length=255, blank=True, default="")
    cancel_requested_at = MomentField(_("cancel requested"), null=True, blank=True)
    cancel_reason = models.CharField(
        _("reason of the cancel"), max_length=500, blank=True, default=""
    )
    is_awaited = models.BooleanField(default=False, editable=False)
    queued_input = models.BinaryField(null=True, editable=False)
    idempotency_key = models.CharField(max_length=255, blank=True, default="")
    request_digest = models.BinaryField(max_length=32, default=b"")
    root_run_id = models.UUIDField(_("root run"))
    parent_run = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="child_runs",
        verbose_name=_("parent run"),
    )
    created_at = MomentField(_("created"), db_default=Now())
    started_at = MomentField(_("started"), null=True, blank=True)
    ended_at = MomentField(_("ended"), null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        permissions = [
            ("start_run", "Can start runs"),
            ("retry_run", "Can retry failed runs"),
            ("resume_run", "Can resume runs"),
            ("edit_state", "Can edit the state of a thread"),
            ("answer_wait", "Can answer questions"),
            ("fork_thread", "Can fork threads"),
            ("cancel_run", "Can cancel runs"),
            ("move_run", "Can move runs to another revision"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "namespace"],
                condition=models.Q(status__in=HOLDING, queued_input=None),
                name="stateknot_run_one_holder",
            ),
            models.UniqueConstraint(
                fields=["graph_id", "idempotency_key"],
                condition=~models.Q(idempotency_key=""),
                name="stateknot_run_one_per_key",
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=[s.value for s in RunStatus]),
                name="stateknot_run_known_status",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_expires_at"],
                condition=models.Q(status__in=["pending", "running", "waiting"]),
                name="stateknot_run_runnable",
            ),
            models.Index(
                fields=["graph_id", "-priority", "created_at"],
                condition=models.Q(status="pending", parent_run=None),
                name="stateknot_run_line",
            ),
            models.Index(
                fields=["thread", "created_at"],
                condition=models.Q(queued_input__isnull=False),
                name="stateknot_run_queue",
            ),
            models.Index(
                fields=["cancel_requested_at"],
                condition=models.Q(
                    status__in=HOLDING, cancel_requested_at__isnull=False
                ),
                name="stateknot_run_cancelling",
            ),
            models.Index(fields=["status", "-created_at"], name="stateknot_run_status"),
            models.Index(
                fields=["graph_id", "status", "-created_at"], name="stateknot_run_graph"
            ),
            models.Index(fields=["root_run_id"], name="stateknot_run_root"),
        ]

    def __str__(self) -> str:
        return f"{self.graph_id} {self.id}"

    @property
    def is_queued(self) -> bool:
        """Whether it waits for its thread, and so has no checkpoint yet."""
        return self.queued_input is not None

    @property
    def is_terminal(self) -> bool:
        """Whether nothing will happen any more unless somebody reopens the run."""
        return RunStatus(self.status).is_terminal
