"""What transactional nodes write: it must be there once, whatever happens."""

from __future__ import annotations

from django.db import models


class Booking(models.Model):
    """One row per call of a transactional node whose transaction was committed."""

    run_id = models.CharField(max_length=36)
    node = models.CharField(max_length=32)

    class Meta:
        # The test's own process uses the model without the app.
        app_label = "matrix_site"

    def __str__(self) -> str:
        return f"{self.node} of {self.run_id}"
