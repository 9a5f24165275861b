"""`manage.py stateknot_demo`: a licence audit from nothing to a page in the admin.

It puts the parts of `project/audit/demo/` in order and prints. The job itself stands in
`project/audit/graphs.py`.
"""

from __future__ import annotations

import logging
import sys
from argparse import RawDescriptionHelpFormatter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from project.audit.demo.following import Audit
from project.audit.demo.locks import FileLock
from project.audit.demo.operator import NAME, reset_operator
from project.audit.demo.packages import make_own_terms, make_unreadable
from project.audit.demo.server import ServerError, running_server
from project.audit.inputs import InputFileError, read_requirements
from stateknot.management.supervision.inbox import SignalInbox

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from project.audit.demo.progress import Look
    from project.audit.demo.server import Place

EXAMPLES = """\
examples:
  manage.py stateknot_demo
  manage.py stateknot_demo --once --input requirements/runtime.txt

exit codes:
  0  ended with Ctrl-C; with --once, the run has completed or waits for a person
  1  nothing could be started, web or worker ended by itself; with --once, the run
     failed or was not awaited
"""


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
        once = options["once"]
        try:
            with SignalInbox() as inbox:
                state = self._prepare_input(options["input"], once=once)
                last = self._serve(state, inbox, once=once)
        except (InputFileError, ServerError) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(_explain_system_error(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"the database {_name_database()} cannot be used: {error}"
            ) from error
        self._say("", "Ended; no process is left.")
        if once and (last is None or last.status not in {"completed", "interrupted"}):
            sys.exit(1)

    def _prepare_input(self, file: Path | None, *, once: bool) -> dict[str, Any]:
        """Check the input before anything is started; give the run's first state."""
        if file is not None:
            count = len(read_requirements(file))
            if not count:
                raise InputFileError(
                    f"{file}: names no package; write one name==version a line, or "
                    "give no file to audit this environment"
                )
            self._say(f"Licence audit of the packages named in {file}: {count}.")
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

    def _serve(
        self, state: dict[str, Any], inbox: SignalInbox, *, once: bool
    ) -> Look | None:
        """Bring everything up, follow one audit; None if it was stopped before."""
        logs = settings.VAR_DIR / "log"
        with closing(_lock_database(logs)) as lock:
            password = _prepare_database(lock)
            self._say("", "Starting web server and worker ...")
            with running_server(logs, inbox) as server:
                if inbox.stops:
                    return None
                _log_to(server.place.log_dir / "demo.log")
                self._introduce(server.place, password)
                return Audit(state, server, self._say, once=once).follow(inbox)

    def _introduce(self, place: Place, password: str | None) -> None:
        self._say(
            f"Admin     {place.origin}/admin/",
            f"Name      {NAME}",
            f"Password  {password or 'as the demo that is up already has printed'}",
            f"Database  {_name_database()}",
            f"Logs      {place.log_dir}",
        )

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)
        self.stdout.flush()


def _lock_database(directory: Path) -> FileLock:
    """Give the lock that the demos on one database share while they are up."""
    database = connection.settings_dict
    identity = "|".join(str(database[key]) for key in ("HOST", "PORT", "NAME"))
    return FileLock(directory / f"database-{crc32(identity.encode()):08x}.lock")


def _prepare_database(lock: FileLock) -> str | None:
    """Migrate and give the operator a new password; returns it.

    None while another demo is up on this database: the password it has printed must
    stay good, and so must the sessions that began with it.
    """
    is_first = lock.take_alone()
    if not is_first:
        lock.share()
    call_command("migrate", interactive=False, verbosity=0)
    password = reset_operator() if is_first else None
    lock.share()
    return password


def _name_database() -> str:
    return str(connection.settings_dict["NAME"])


def _explain_system_error(error: OSError) -> str:
    if not error.filename:
        return str(error)
    return (
        f"{error.filename}: {error.strerror}; the demo keeps its files under "
        f"{settings.VAR_DIR}, let this user write there"
    )


def _log_to(file: Path) -> None:
    """Send this process's log into a file: the terminal is for the newcomer."""
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    handler = logging.FileHandler(file, delay=True)
    logging.basicConfig(handlers=[handler], format=form, force=True)
