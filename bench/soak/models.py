"""The world that the soak's nodes have an effect on: a row for each effect."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """One call of a node, with the key that makes its effect the same."""

    run_id = models.CharField(max_length=36, db_index=True)
    node = models.CharField(max_length=32)
    key = models.CharField(max_length=80)

    def __str__(self) -> str:
        return f"{self.node} of {self.run_id}"
