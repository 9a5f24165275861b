"""Graph revisions: one row per compiled definition that ever admitted a run."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from stateknot.models.moments import MomentField


class GraphRevision(models.Model):
    """An immutable compiled definition, named by its digest."""

    class State(models.TextChoices):
        """Whether new runs begin on it."""

        ACTIVE = "active", _("active")
        DRAINING = "draining", _("draining")
        RETIRED = "retired", _("retired")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(_("digest"), max_length=71, unique=True)
    graph_id = models.CharField(_("graph"), max_length=128)
    version = models.CharField(_("version"), max_length=62)
    definition = models.BinaryField(_("definition"))
    source_map = models.BinaryField(_("source map"), null=True)
    state = models.CharField(
        _("state"), max_length=8, choices=State.choices, default=State.ACTIVE
    )
    first_seen_at = MomentField(_("first seen"), db_default=Now())

    class Meta:
        verbose_name = _("graph revision")
        verbose_name_plural = _("graph revisions")
        indexes = [
            models.Index(
                fields=["graph_id", "-first_seen_at"], name="stateknot_revision_graph"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.graph_id} {self.version} ({self.digest[7:15]})"
