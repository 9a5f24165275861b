"""Short runs made by several processes at once over one database.

`run_together` starts them, waits until each is ready, and lets them go together. Run as
a module this file is one of them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from bench.databases import Database


def run_together(database: Database, processes: int, runs: int) -> float:
    """Seconds in which `processes` made `runs` runs each, from their start signal on.

    Raises RuntimeError when one of them failed.
    """
    command = [sys.executable, "-m", __name__, database.alias, database.url, str(runs)]
    started = [
        subprocess.Popen(  # noqa: S603 - this file, with our own arguments
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    for process in started:
        _say(process, "ready")
    start = time.perf_counter()
    for process in started:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _say(process, "done")
    seconds = time.perf_counter() - start
    for process in started:
        process.communicate()
    return seconds


def _say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    said = process.stdout.readline().strip()
    if said != word:
        raise RuntimeError(f"a process of the bench said {said!r} in place of {word!r}")


def main() -> None:
    """Be one of the processes: get ready, wait for the signal, run."""
    alias, url, runs = sys.argv[1:4]
    from bench.databases import configure

    configure({alias: url})
    from bench import graphs
    from stateknot.storage import DjangoCheckpointer

    graph = graphs.short().with_checkpointer(DjangoCheckpointer(alias))
    name = uuid4().hex
    graph.run_with_thread(f"{name}-warm", {})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(runs)):
        graph.run_with_thread(f"{name}-{number}", {})
    sys.stdout.write("done\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
