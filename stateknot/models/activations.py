"""Who runs which activation of a superstep that is spread over workers.

Rows of one superstep; they go with its boundary. See Note [A spread step] in
`storage/spreading.py`.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from stateknot.models.moments import MomentField

SPREAD = "spread over workers"
"""Who holds a run whose step is spread: no process."""


class ActivationLease(models.Model):
    """The lease of one activation, and what became of it once it ended.

    It is of the superstep behind checkpoint `head_id`, spread in the run's epoch
    `run_epoch`; `place` is the activation's in active order. One that was never woken
    waits for a sibling to end. `outcome` is canonical JSON.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(
        "stateknot.Run",
        models.CASCADE,
        related_name="activation_leases",
        verbose_name=_("run"),
    )
    head_id = models.UUIDField(_("head"))
    run_epoch = models.BigIntegerField(_("epoch of the run"))
    activation_id = models.CharField(_("activation"), max_length=200)
    place = models.IntegerField(_("place"))
    epoch = models.BigIntegerField(_("epoch"), default=0)
    holder = models.CharField(_("holder"), max_length=200, blank=True, default="")
    lease_expires_at = MomentField(_("lease until"), null=True, blank=True)
    losses = models.IntegerField(_("workers lost"), default=0)
    woken_at = MomentField(_("last woken"), null=True, blank=True)
    started_at = MomentField(_("started"), null=True, blank=True)
    ended_at = MomentField(_("ended"), null=True, blank=True)
    outcome = models.BinaryField(_("outcome"), null=True)

    class Meta:
        verbose_name = _("activation lease")
        verbose_name_plural = _("activation leases")
        constraints = [
            models.UniqueConstraint(
                fields=["run", "activation_id"], name="stateknot_activationlease_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["woken_at"],
                condition=models.Q(ended_at=None),
                name="stateknot_activationlease_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.activation_id}"
