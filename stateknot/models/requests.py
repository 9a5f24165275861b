"""Requests that were answered under an idempotency key, to answer them alike again."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from stateknot.models.moments import MomentField


class AnsweredRequest(models.Model):
    """The answer to the first request of a caller under a key.

    It is written in the transaction of what the request did, so there is an answer
    exactly where something was done. `scope` names the caller; `thread_key` is the
    thread that the answer tells of.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    scope = models.CharField(_("caller"), max_length=255)
    key = models.CharField(_("idempotency key"), max_length=255)
    request_digest = models.BinaryField(max_length=32)
    thread_key = models.CharField(max_length=255, blank=True, default="")
    status = models.IntegerField(_("status"), default=0)
    headers = models.JSONField(default=dict, blank=True)
    body = models.BinaryField(default=b"")
    answered_at = MomentField(_("answered"), db_default=Now())

    class Meta:
        verbose_name = _("answered request")
        verbose_name_plural = _("answered requests")
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "key"], name="stateknot_request_one_per_key"
            ),
        ]
        indexes = [
            models.Index(fields=["answered_at"], name="stateknot_request_age"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}"
