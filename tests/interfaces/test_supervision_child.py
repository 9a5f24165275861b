"""Children as real processes: ended, killed, orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stateknot.management.supervision.child import Child, Program, drain
from stateknot.management.supervision.inbox import SignalInbox
from stateknot.management.supervision.pulse import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE_SECONDS = 20.0
LONGER_THAN_A_TEST = 3_600.0

# Writes the pids of itself and a child of its own, then waits; TERM ends it with 0.
OBEDIENT = """
import os, signal, sys
child = os.fork() or signal.pause()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open(sys.argv[1], "w").write(f"{os.getpid()} {child}\\n")
while True:
    signal.pause()
"""
STUBBORN = OBEDIENT.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")

# A supervisor of one such child.
PARENT = """
import signal, sys
from stateknot.management.supervision.child import Child, Program
Child(Program(name="c", argv=[sys.executable, *sys.argv[1:]],
              on_orphaned=signal.SIGKILL))
signal.pause()
"""


def wait_until(condition: Callable[[], object]) -> None:
    """Look again and again until `condition` holds; fail at the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.02)


class Script:
    """A program that says over a file which processes it consists of."""

    def __init__(self, source: str, folder: Path) -> None:
        self._file = folder / "pids"
        self.argv = ["-c", source, str(self._file)]

    def start(self, on_orphaned: signal.Signals = signal.SIGKILL) -> Child:
        """Start it and wait until it runs."""
        program = Program(
            name="c", argv=[sys.executable, *self.argv], on_orphaned=on_orphaned
        )
        child = Child(program)
        wait_until(self.pids)
        return child

    def pids(self) -> list[int]:
        """Return the pids of the leader and of its child, once both are known."""
        text = self._file.read_text() if self._file.exists() else ""
        return [int(pid) for pid in text.split()] if text.endswith("\n") else []


@pytest.fixture
def inbox() -> Iterator[SignalInbox]:
    with SignalInbox() as box:
        yield box


def test_child_leads_a_session_of_its_own(tmp_path: Path) -> None:
    """Ctrl-C at the terminal must reach the supervisor alone."""
    child = Script(OBEDIENT, tmp_path).start()
    assert os.getsid(child.pid) == child.pid
    child.kill_group()


def test_obedient_child_drains_cleanly(tmp_path: Path, inbox: SignalInbox) -> None:
    script = Script(OBEDIENT, tmp_path)
    assert drain([script.start()], grace=DEADLINE_SECONDS, inbox=inbox)
    wait_until(lambda: not any(map(is_alive, script.pids())))


def test_stubborn_child_is_killed_after_the_grace_period(
    tmp_path: Path, inbox: SignalInbox
) -> None:
    script = Script(STUBBORN, tmp_path)
    assert not drain([script.start()], grace=0.2, inbox=inbox)
    wait_until(lambda: not any(map(is_alive, script.pids())))


def test_second_stop_signal_ends_the_grace_period(
    tmp_path: Path, inbox: SignalInbox
) -> None:
    script = Script(STUBBORN, tmp_path)
    child = script.start()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    assert not drain([child], grace=LONGER_THAN_A_TEST, inbox=inbox)


def test_child_that_failed_before_does_not_count_as_clean(inbox: SignalInbox) -> None:
    argv = [sys.executable, "-c", "raise SystemExit(3)"]
    child = Child(Program(name="c", argv=argv, on_orphaned=signal.SIGKILL))
    wait_until(lambda: child.exit_code is not None)
    assert child.exit_code == 3
    assert not drain([child], grace=1, inbox=inbox)


def test_rest_of_a_group_dies_with_it_after_its_leader(tmp_path: Path) -> None:
    script = Script(OBEDIENT, tmp_path)
    child = script.start()
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: child.exit_code is not None)
    assert is_alive(script.pids()[1])
    child.kill_group()
    wait_until(lambda: not is_alive(script.pids()[1]))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl")
def test_child_does_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    script = Script(OBEDIENT, tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *script.argv])
    wait_until(script.pids)
    leader, grandchild = script.pids()
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(leader))
    os.kill(grandchild, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs prctl")
def test_child_whose_parent_is_dead_already_dies_at_once() -> None:
    """The parent may end between the fork and the request to the kernel."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    module = "stateknot.management.supervision.tether"
    argv = [sys.executable, "-m", module, "SIGKILL", str(dead.pid), "sleep", "60"]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL


def test_log_of_a_child_stands_in_its_file(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    source = "import sys; print('out', flush=True); sys.exit('err')"
    child = Child(
        Program(
            name="c",
            argv=[sys.executable, "-c", source],
            on_orphaned=signal.SIGKILL,
            log=log,
        )
    )
    wait_until(lambda: child.exit_code is not None)
    assert log.read_text() == "out\nerr\n"


def test_signals_have_their_old_handlers_after_the_inbox() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with SignalInbox() as box:
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: box.wait(0.1) or box.stops == 1)
    assert signal.getsignal(signal.SIGTERM) is before


def test_end_of_a_child_wakes_the_inbox_without_counting_as_stop() -> None:
    with SignalInbox() as box:
        child = subprocess.Popen([sys.executable, "-c", ""])
        box.wait(LONGER_THAN_A_TEST)
        assert box.stops == 0
        child.wait()
