"""The whole of a sweep: runs that nobody works on are woken, due schedules start, old
answers to repeated requests are forgotten.

What commands and workers call. `stateknot/runtime/recovery.py` wakes, `schedules.py`
starts.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stateknot.runtime.recovery import sweep
from stateknot.services.repeats import forget_answers
from stateknot.services.schedules import start_due, store_schedules

if TYPE_CHECKING:
    from stateknot.runtime.recovery import SweepReport
from stateknot.services.schedules import TickReport

FORGET_EVERY_SECONDS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """What one pass did."""

    swept: SweepReport
    ticked: TickReport

    @property
    def failed(self) -> tuple[str, ...]:
        """The runs and schedules that could not be looked at."""
        return (*self.swept.failed, *self.ticked.failed)


class SweepPass:
    """Makes one pass whenever it is called. Safe to run twice at once.

    The schedules that code declares are stored by the first pass of a process that
    gets so far, and not again: while old and new code run side by side, each would
    take the other's change back at every pass.
    """

    def __init__(self) -> None:
        self._has_stored = False
        self._forgot_at = -math.inf

    def __call__(self) -> PassReport:
        """Sweep, then start what is due."""
        swept = sweep()
        if not self._has_stored:
            store_schedules()
            self._has_stored = True
        self._forget()
        return PassReport(swept=swept, ticked=start_due())

    def _forget(self) -> None:
        """Once in a while: what is forgotten late costs some rows."""
        now = time.monotonic()
        if now - self._forgot_at >= FORGET_EVERY_SECONDS:
            self._forgot_at = now
            forget_answers()
