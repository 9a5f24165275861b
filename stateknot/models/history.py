"""What happened: checkpoints, attempts, waits and the journal.

Checkpoints and journal rows never change; an attempt or a wait closes once. A
checkpoint's parent is no foreign key: a prune may take the parent away and leave a base
record, and what is kept must stay readable. No reference of a checkpoint, an attempt or
the journal is a constraint of the database: docs/why/fences.md says why. See
`storage/deltas.py` for how a row's parts make a state.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from stateknot.kernel.vocabulary import (
    AttemptStatus,
    CheckpointSource,
    WaitKind,
    WaitStatus,
)
from stateknot.models.moments import MomentField


def _choices(
    kinds: type[AttemptStatus | CheckpointSource | WaitKind | WaitStatus],
) -> list[tuple[str, str]]:
    return [(kind.value, kind.value) for kind in kinds]


class Checkpoint(models.Model):
    """The record written at a boundary: what its superstep changed, and who is next.

    `sequence` orders it in its thread and namespace, `lineage` is the sequence of the
    base record of its branch. `changes` and `appends` are JSON objects by field;
    `record` holds pending activations, joins, metadata and where unchanged fields
    stand.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    thread = models.ForeignKey(
        "stateknot.Thread",
        models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="checkpoints",
        verbose_name=_("thread"),
    )
    run = models.ForeignKey(
        "stateknot.Run",
        models.CASCADE,
        db_constraint=False,
        null=True,
        blank=True,
        related_name="checkpoints",
        verbose_name=_("run"),
    )
    namespace = models.CharField(_("namespace"), max_length=512, blank=True, default="")
    sequence = models.BigIntegerField(_("sequence"))
    lineage = models.BigIntegerField(_("lineage"))
    parent_id = models.UUIDField(_("parent"), null=True, blank=True)
    step = models.BigIntegerField(_("superstep"))
    source = models.CharField(
        _("source"), max_length=9, choices=_choices(CheckpointSource)
    )
    changes = models.BinaryField(_("changes"))
    appends = models.BinaryField(_("appended"), null=True)
    record = models.BinaryField(_("record"))
    digest = models.BinaryField(_("digest"), max_length=32)
    created_at = MomentField(_("written"), db_default=Now())

    class Meta:
        verbose_name = _("checkpoint")
        verbose_name_plural = _("checkpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "namespace", "sequence"],
                name="stateknot_checkpoint_order",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class NodeAttempt(models.Model):
    """One try of an activation; `result` is there while no checkpoint folded it."""

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(
        "stateknot.Run",
        models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="attempts",
        verbose_name=_("run"),
    )
    activation_id = models.CharField(_("activation"), max_length=200)
    node_id = models.CharField(_("node"), max_length=128)
    number = models.IntegerField(_("attempt"))
    status = models.CharField(
        _("status"), max_length=11, choices=_choices(AttemptStatus)
    )
    lineage = models.BigIntegerField(_("lineage"))
    sequence = models.BigIntegerField(_("sequence"))
    started_at = MomentField(_("started"))
    ended_at = MomentField(_("ended"), null=True, blank=True)
    error = models.JSONField(_("error"), null=True, blank=True)
    result = models.BinaryField(_("pending result"), null=True)
    is_folded = models.BooleanField(_("folded"), default=False)
    usage = models.JSONField(_("usage"), null=True, blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status=AttemptStatus.RUNNING.value, ended_at=None)
                | (
                    ~models.Q(status=AttemptStatus.RUNNING.value)
                    & ~models.Q(ended_at=None)
                ),
                name="stateknot_attempt_ends_once",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "sequence"], name="stateknot_attempt_run"),
            models.Index(
                fields=["run", "lineage"],
                condition=models.Q(result__isnull=False, is_folded=False),
                name="stateknot_attempt_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.activation_id} attempt {self.number}"


class Wait(models.Model):
    """A question or a timer, with its answer and who gave it."""

    id = models.UUIDField(primary_key=True, editable=False)
    question_id = models.CharField(_("id"), max_length=200, blank=True, default="")
    run = models.ForeignKey(
        "stateknot.Run", models.CASCADE, related_name="waits", verbose_name=_("run")
    )
    thread = models.ForeignKey(
        "stateknot.Thread",
        models.CASCADE,
        db_index=False,
        related_name="waits",
        verbose_name=_("thread"),
    )
    namespace = models.CharField(_("namespace"), max_length=512, blank=True, default="")
    activation_id = models.CharField(_("activation"), max_length=200)
    node_id = models.CharField(_("node"), max_length=128)
    kind = models.CharField(_("kind"), max_length=9, choices=_choices(WaitKind))
    status = models.CharField(_("status"), max_length=9, choices=_choices(WaitStatus))
    lineage = models.BigIntegerField(_("lineage"))
    sequence = models.BigIntegerField(_("sequence"))
    position = models.IntegerField(_("position"), default=0)
    key = models.CharField(_("key"), max_length=200, null=True, blank=True)  # noqa: DJ001 - no key and an empty key differ
    payload = models.BinaryField(_("question"))
    schema = models.BinaryField(_("schema"), null=True)
    default = models.BinaryField(_("default answer"), null=True)
    answer = models.BinaryField(_("answer"), null=True)
    answered_by = models.CharField(
        _("answered by"), max_length=255, blank=True, default=""
    )
    answered_sequence = models.BigIntegerField(null=True, blank=True)
    due_at = MomentField(_("due"), null=True, blank=True)
    asked_at = MomentField(_("asked"), db_default=Now())
    answered_at = MomentField(_("answered"), null=True, blank=True)

    class Meta:
        verbose_name = _("question")
        verbose_name_plural = _("questions")
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(status=WaitStatus.ANSWERED.value)
                | models.Q(answer__isnull=False),
                name="stateknot_wait_answer_present",
            ),
        ]
        indexes = [
            models.Index(
                fields=["thread", "namespace", "status"], name="stateknot_wait_thread"
            ),
            models.Index(
                fields=["asked_at"],
                condition=models.Q(status=WaitStatus.OPEN.value),
                name="stateknot_wait_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.id}"


class JournalEvent(models.Model):
    """One row of a run's journal: the events of a boundary, or what came between.

    `number` is dense from 0 per run; `first_event` is the dense number of its first
    event. `events` is JSON; see Note [How events are packed].
    """

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(
        "stateknot.Run",
        models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="journal",
        verbose_name=_("run"),
    )
    number = models.BigIntegerField(_("number"))
    first_event = models.BigIntegerField(_("first event"))
    checkpoint_id = models.UUIDField(_("checkpoint"), null=True, blank=True)
    actor = models.CharField(_("actor"), max_length=255, blank=True, default="")
    events = models.BinaryField(_("events"))
    digest = models.BinaryField(_("digest"), max_length=32)
    recorded_at = MomentField(_("recorded"), db_default=Now())

    class Meta:
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "number"], name="stateknot_journal_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.number}"
