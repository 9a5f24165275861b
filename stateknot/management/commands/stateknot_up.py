"""`manage.py stateknot_up`: migrations, web server and worker in one command.

Parses and wires; the processes stand in `stateknot/management/supervision/stack.py`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from stateknot.management.commands._arguments import (
    add_worker_options,
    port,
    show_examples,
)
from stateknot.management.supervision.stack import (
    ReadyPipe,
    Stack,
    answers_http,
    is_free,
    web_program,
    worker_program,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser

# The worker first kills what outstays its own grace period.
MARGIN_SECONDS = 5.0

EXAMPLES = """\
example:
  manage.py stateknot_up --port 8000 --workers 2 --log-dir var/log

SIGTERM or Ctrl-C drains both; a second one ends them at once.

exit codes:
  0  ended on demand, everything drained
  1  a process ended by itself or had to be killed, or the start failed
  2  wrong arguments
"""


class Command(BaseCommand):
    """Bring everything up, keep it up, bring it down."""

    help = "Migrate, then run the web server and a worker until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        show_examples(parser, EXAMPLES)
        parser.add_argument("--host", default="127.0.0.1", help="Default 127.0.0.1.")
        parser.add_argument("--port", type=port, default=8000, help="Default 8000.")
        add_worker_options(parser)
        parser.add_argument(
            "--no-migrate", action="store_true", help="Leave the database as it is."
        )
        parser.add_argument(
            "--log-dir",
            type=Path,
            help="Write web.log and worker.log there instead of the terminal.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; the exit code says how it ended."""
        host, number = options["host"], options["port"]
        application = _require_application()
        _require_free(host, number)
        if not options["no_migrate"]:
            call_command("migrate", interactive=False, verbosity=options["verbosity"])
        connections.close_all()
        stack = _build_stack(application, options)
        clean = stack.run(
            grace=options["grace"] + MARGIN_SECONDS,
            say=self._say,
            on_ready=lambda: self._say(f"ready on http://{host}:{number}/"),
        )
        self._say("ended" if clean else "ended with a failure")
        if not clean:
            sys.exit(1)

    def _say(self, text: str) -> None:
        self.stdout.write(f"stateknot: {text}")
        self.stdout.flush()


def _require_application() -> str:
    """Return the WSGI application; raises CommandError if nothing can serve it."""
    if find_spec("gunicorn") is None:
        raise CommandError("The web server is missing: install gunicorn 25.1 or newer.")
    if not settings.WSGI_APPLICATION:
        raise CommandError("WSGI_APPLICATION is not set: name the project's there.")
    return settings.WSGI_APPLICATION


def _require_free(host: str, number: int) -> None:
    """Raise CommandError if the address is taken.

    The web server would find out later, and until then what listens there would pass
    for it.
    """
    if not is_free(host, number):
        raise CommandError(f"Nothing can listen on {host}:{number}: choose another.")


def _build_stack(application: str, options: dict[str, Any]) -> Stack:
    host, number, log_dir = options["host"], options["port"], options["log_dir"]
    if log_dir:
        log_dir.mkdir(parents=True, exist_ok=True)
    ready = ReadyPipe()
    web = web_program(
        application,
        host=host,
        port=number,
        log=log_dir and log_dir / "web.log",
    )
    worker = worker_program(
        workers=options["workers"],
        grace=options["grace"],
        ready_fd=ready.writer_fd,
        log=log_dir and log_dir / "worker.log",
    )
    return Stack(
        [web, worker], is_ready=lambda: ready.is_ready() and answers_http(host, number)
    )
