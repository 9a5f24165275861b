"""Soak: `python -m bench.soak [--runs N] [--seconds S] [--kill-every S] ...`.

Workers drive runs while one of them is struck every few seconds; behind that, each run
must have ended well, once. The last line is the verdict, the exit code 1 if it is bad.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.databases import POSTGRES, SQLITE, start_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.soak.crowd import Crowd
    from bench.soak.fleet import Fleet

ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 0.2
_TELL_SECONDS = 10.0
_FED_BY = 0.8
"""The share of the time within which the last run is started."""


def main() -> None:
    """Run the soak that the command line asks for."""
    options = _options()
    place = Path(tempfile.mkdtemp(prefix="stateknot-soak-"))
    with _database(options.database, place) as url:
        os.environ["DATABASE_URL"] = url
        os.environ["DJANGO_SETTINGS_MODULE"] = "bench.soak.settings"
        os.environ.setdefault("LOG_LEVEL", "WARNING")
        is_good = _soak(options, place)
    if is_good and not options.keep:
        shutil.rmtree(place, ignore_errors=True)
    else:
        sys.stderr.write(f"soak: the workers' logs are in {place}\n")
    sys.exit(not is_good)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=300.0, help="of strikes")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--kill-every", type=float, default=4.0, help="seconds, on average"
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=60.0,
        help="seconds without the end of a run after which the rest are stuck",
    )
    parser.add_argument("--database", choices=(POSTGRES, SQLITE), default=POSTGRES)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    parser.add_argument("--keep", action="store_true", help="keep the workers' logs")
    return parser.parse_args()


@contextmanager
def _database(kind: str, place: Path) -> Iterator[str]:
    if kind == SQLITE:
        yield f"sqlite:///{place / 'soak.sqlite3'}"
        return
    server = start_server(place / "data")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _soak(options: argparse.Namespace, place: Path) -> bool:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from bench.soak.crowd import Crowd
    from bench.soak.fleet import Fleet
    from bench.soak.verdict import judge

    call_command("migrate", run_syncdb=True, verbosity=0)
    sys.stderr.write(f"soak: seed {options.seed}\n")
    crowd = Crowd(options.runs)
    with Fleet(options.workers, ROOT, place, options.seed) as fleet:
        _go(options, crowd, fleet)
        _settle(options.settle, crowd, fleet)
    verdict = judge(crowd.started)
    connections.close_all()
    kills = sum(fleet.strikes.values())
    sys.stdout.write(
        f"soak: runs={crowd.started} kills={kills} lost={verdict.lost} "
        f"doubled={verdict.doubled} stuck={verdict.stuck}\n"
    )
    return verdict.is_good


def _go(options: argparse.Namespace, crowd: Crowd, fleet: Fleet) -> None:
    """Feed, answer and strike until the time is over and every run was started."""
    start = time.monotonic()
    with _striking(options, fleet):
        for now in _looks(crowd, fleet):
            passed = (now - start) / options.seconds
            crowd.start_up_to(int(options.runs * passed / _FED_BY) + 1)
            if passed >= 1 and crowd.started == options.runs:
                return


@contextmanager
def _striking(options: argparse.Namespace, fleet: Fleet) -> Iterator[None]:
    """Strike now and then, however busy the crowd is."""
    chance = random.Random(options.seed)  # noqa: S311 - chooses moments
    is_over = threading.Event()

    def strike_on() -> None:
        while not is_over.wait(options.kill_every * chance.uniform(0.5, 1.5)):
            fleet.strike()

    thread = threading.Thread(target=strike_on, name="strikes")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _settle(patience: float, crowd: Crowd, fleet: Fleet) -> None:
    """Answer until every run has ended, or none has for `patience` seconds."""
    left, since = crowd.started + 1, time.monotonic()
    for now in _looks(crowd, fleet):
        fleet.fill()
        still = crowd.count_open()
        if still < left:
            left, since = still, now
        if not left or now - since > patience:
            return


def _looks(crowd: Crowd, fleet: Fleet) -> Iterator[float]:
    """A moment every now and then; questions are answered, and progress is told."""
    tell_at = 0.0
    while True:
        now = time.monotonic()
        crowd.answer()
        if now >= tell_at:
            tell_at = now + _TELL_SECONDS
            sys.stderr.write(
                f"soak: {crowd.started} started, {crowd.count_open()} open, "
                f"{dict(fleet.strikes)}\n"
            )
        yield now
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
