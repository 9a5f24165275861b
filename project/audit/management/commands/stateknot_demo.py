"""`manage.py stateknot_demo`: a licence audit from nothing to a page in the admin.

It puts the parts of `project/audit/demo/` in order and prints. The job itself stands in
`project/audit/graphs.py`.
"""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from project.audit.demo.operator import reset_operator
from project.audit.demo.packages import make_own_terms, make_unreadable
from project.audit.demo.progress import Look, describe, look
from project.audit.demo.server import HOST, ServerError, find_port, running_server
from project.audit.demo.summary import summarise
from project.audit.inputs import InputFileError, read_requirements
from project.audit.models import AuditReport
from stateknot.management.supervision.inbox import SignalInbox
from stateknot.services import start_run

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from stateknot.management.supervision.child import Child

LOOK_SECONDS = 0.3
EXAMPLES = """\
examples:
  manage.py stateknot_demo
  manage.py stateknot_demo --once --input requirements/runtime.txt

exit codes:
  0  ended with Ctrl-C; with --once, the run has completed or waits for a person
  1  nothing could be started; with --once, the run failed
"""
HINTS = {
    "failed": "To go on: open the run's page, edit the state as it says there, retry.",
    "interrupted": "To go on: open the run's page and answer there, yes or no.",
    "completed": "The audit has ended. The pages stay up until Ctrl-C.",
    "cancelled": "The audit was cancelled. The pages stay up until Ctrl-C.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Audit:
    """The audit that was started, and its page in the admin."""

    run_id: str
    thread_id: str
    page: str


class Command(BaseCommand):
    """Start everything, run one audit, tell what happens."""

    help = "Audit the licences of installed packages, with web, worker and admin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = EXAMPLES
        parser.add_argument(
            "--once", action="store_true", help="End when the run ends or waits."
        )
        parser.add_argument(
            "--input",
            type=Path,
            metavar="PATH",
            help="Audit the packages of a requirements file, not the environment.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until Ctrl-C, or until the run is at rest."""
        state = self._prepare_input(options["input"], once=options["once"])
        call_command("migrate", interactive=False, verbosity=0)
        try:
            port = find_port()
            with SignalInbox() as inbox:
                self._introduce(port)
                with running_server(port, _log_dir(port), inbox) as server:
                    last = self._audit(state, server, inbox, port, options["once"])
        except ServerError as error:
            raise CommandError(str(error)) from error
        self._say("", "Ended; no process is left.")
        if options["once"] and last.status not in {"completed", "interrupted"}:
            sys.exit(1)

    def _prepare_input(self, file: Path | None, *, once: bool) -> dict[str, Any]:
        """Check the input before anything is started; give the run's first state."""
        if file is not None:
            try:
                count = len(read_requirements(file))
            except InputFileError as error:
                raise CommandError(str(error)) from error
            self._say(f"Licence audit of the {count} packages named in {file}.")
            return {"requirements": str(file.resolve())}
        self._say(f"Licence audit of the Python packages in {sys.prefix}.")
        root = settings.VAR_DIR / "demo-packages"
        own = make_own_terms(root)
        self._say(f"Added {own.name}, whose licence is home-made: a question is asked.")
        if once:
            self._say("Left out: the damaged package that the demo without ONCE adds.")
            return {"extra_paths": [str(own.directory)]}
        damaged = make_unreadable(root)
        self._say(f"Added {damaged.name}, whose metadata is cut off: you repair it.")
        return {"extra_paths": [str(own.directory), str(damaged.directory)]}

    def _introduce(self, port: int) -> None:
        name, password = reset_operator()
        self._say(
            "",
            f"Admin     http://{HOST}:{port}/admin/",
            f"Name      {name}",
            f"Password  {password}",
            f"Database  {connection.settings_dict['NAME']}",
            f"Logs      {_log_dir(port)}",
            "",
        )

    def _audit(
        self,
        state: dict[str, Any],
        server: Child,
        inbox: SignalInbox,
        port: int,
        once: bool,
    ) -> Look:
        audit = self._start(state, port)
        last = self._follow(audit, server, inbox, once=once)
        self._summarise(audit)
        return last

    def _start(self, state: dict[str, Any], port: int) -> _Audit:
        thread_id = f"audit-{timezone.now():%Y%m%d-%H%M%S-%f}"
        run = start_run("project.audit", state, thread_id=thread_id)
        address = reverse("admin:stateknot_run_change", args=[run.pk])
        page = f"http://{HOST}:{port}{address}"
        self._say(f"Run       {page}", "")
        return _Audit(run_id=str(run.pk), thread_id=thread_id, page=page)

    def _follow(
        self, audit: _Audit, server: Child, inbox: SignalInbox, *, once: bool
    ) -> Look:
        """Print what is new until a stop signal or, with `once`, until it rests."""
        seen: Look | None = None
        while True:
            now = look(audit.run_id, audit.thread_id)
            self._tell(describe(seen, now))
            if now != seen and now.is_at_rest and not once:
                self._say("", HINTS[now.status], f"  {audit.page}", "")
            seen = now
            if inbox.stops or (once and now.is_at_rest):
                return now
            if server.exit_code is not None:
                raise ServerError("web or worker ended by itself; see the logs above")
            inbox.wait(LOOK_SECONDS)

    def _summarise(self, audit: _Audit) -> None:
        report = AuditReport.objects.filter(run_id=audit.run_id).first()
        lines = summarise(report) if report else ["No report was written yet."]
        self._say("", *lines)

    def _tell(self, lines: list[str]) -> None:
        clock = f"{timezone.localtime():%H:%M:%S}"
        for line in lines:
            self._say(f"{clock}  {line}")

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)
        self.stdout.flush()


def _log_dir(port: int) -> Path:
    """Give each demo of a machine a directory of its own."""
    return Path(settings.VAR_DIR) / "log" / f"port-{port}"
