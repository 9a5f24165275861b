"""Letting time pass for what a store waits for, without waiting.

The memory store takes its clock from outside; the database has its own, so there the
times in the rows are moved into the past.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from stateknot.kernel.memory import MemoryStore


class MemoryTime:
    """A memory store whose clock a test moves on."""

    def __init__(self) -> None:
        self.passed = timedelta()
        self.store: Any = MemoryStore(self.now)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.passed

    def pass_by(self, span: timedelta) -> None:
        """Let `span` pass."""
        self.passed += span


class DatabaseTime:
    """The Django store, whose rows a test makes older."""

    def __init__(self) -> None:
        from stateknot.storage import DjangoCheckpointer

        self.store: Any = DjangoCheckpointer()

    def pass_by(self, span: timedelta) -> None:
        """Let `span` pass for every deadline, timer and retry."""
        from django.db.models import F

        from stateknot.models import Run, Wait

        Wait.objects.exclude(due_at=None).update(
            due_at=F("due_at") - span, asked_at=F("asked_at") - span
        )
        Run.objects.exclude(wake_at=None).update(wake_at=F("wake_at") - span)
