"""One audit of a demo, told as it happens, from its start to its end.

Owns when to look, what to print at a rest, and when to give up. What is new at a look
is put into words by `progress.py`, the outcome by `summary.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils import timezone

from project.audit.demo.progress import Look, describe, look
from project.audit.demo.server import ServerError
from project.audit.demo.summary import summarise
from project.audit.models import AuditReport
from stateknot.services import start_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from project.audit.demo.server import Server
    from stateknot.management.supervision.inbox import SignalInbox

LOOK_SECONDS = 0.3
# Longer than a worker needs to replace a hung cluster and go on.
STALL_SECONDS = 90.0
HINTS = {
    "failed": "To go on, open the run's page, edit the state as it says there, retry.",
    "interrupted": "To go on, open the run's page and answer there.",
    "completed": "The audit has ended. Its report in the admin:",
    "cancelled": "The audit was cancelled.",
}


class Audit:
    """An audit that was started; `say` prints lines.

    With `once` no person is awaited.
    """

    def __init__(
        self,
        state: dict[str, Any],
        server: Server,
        say: Callable[..., None],
        *,
        once: bool,
    ) -> None:
        self._server, self._say, self._once = server, say, once
        self.thread_id = f"audit-{timezone.now():%Y%m%d-%H%M%S-%f}"
        run = start_run(
            "project.audit", state, thread_id=self.thread_id, actor="stateknot_demo"
        )
        self.run_id = str(run.pk)
        self._page = self._address("admin:stateknot_run_change", run.pk)
        self._seen: Look | None = None
        self._rest: Look | None = None
        self._moved_at = time.monotonic()
        say(f"Run       {self._page}", "")

    def follow(self, inbox: SignalInbox) -> Look:
        """Tell what happens until a stop signal or, with `once`, until it rests.

        Raises `ServerError` when web and worker have ended, or when nothing happens.
        """
        while True:
            now = self._look()
            if inbox.stops or (self._once and now.is_at_rest):
                break
            self._server.require_alive()
            self._require_movement(now)
            inbox.wait(LOOK_SECONDS)
        if self._once and now.reported:
            self._summarise()
        return now

    def _look(self) -> Look:
        now = look(self.run_id, self.thread_id)
        if now == self._seen:
            return now
        clock = f"{timezone.localtime():%H:%M:%S}"
        self._say(*(f"{clock}  {x}" for x in describe(self._seen, now, self._rest)))
        if now.is_at_rest:
            if not self._once and (not self._rest or self._rest.status != now.status):
                self._say_what_to_do(now.status)
            self._rest = now
        self._seen, self._moved_at = now, time.monotonic()
        return now

    def _require_movement(self, now: Look) -> None:
        """Raise `ServerError` if a run that should go on has not, for a long time."""
        if now.is_at_rest or time.monotonic() - self._moved_at < STALL_SECONDS:
            return
        raise ServerError(
            f"the run has not moved for {STALL_SECONDS:.0f} seconds; the worker's last "
            f"complaint: {self._server.quote_complaint()}"
        )

    def _say_what_to_do(self, status: str) -> None:
        page = self._page
        if status == "completed":
            report = self._summarise()
            page = self._address("admin:audit_auditreport_change", report.pk)
        self._say("", HINTS[status], f"  {page}", "Ctrl-C ends the demo.", "")

    def _summarise(self) -> AuditReport:
        report = AuditReport.objects.get(run_id=self.run_id)
        self._say("", *summarise(report))
        return report

    def _address(self, name: str, key: Any) -> str:
        return f"{self._server.place.origin}{reverse(name, args=[key])}"
