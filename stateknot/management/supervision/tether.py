"""Tie a process to its parent: the kernel signals it when the parent dies.

Owns the one Linux call behind that (`prctl(PR_SET_PDEATHSIG)`) and the small program
that makes it before it becomes the real one. Elsewhere than on Linux it does nothing.
Imports only the standard library, because it runs before everything else. Read
`child.py` next, which starts every process through here.

Note [Tethers]: a supervisor that is killed with SIGKILL cannot end its children, and a
django-q2 cluster without its leader goes on taking tasks for ever. So each child asks
the kernel for a signal on its parent's death. It asks by itself, in a program that
then executes the real one (the request survives exec), because a `preexec_fn` is not
safe in a parent that has threads. The parent may be dead before the child has asked:
the pid that the parent names is compared afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tether(parent: int, *, on_death: signal.Signals) -> None:
    """Have this process signalled with `on_death` as soon as `parent` has died.

    Must be called in the thread of a process whose parent is (or was) `parent`.
    See Note [Tethers].
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(on_death), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), on_death)


def tether_forks(generations: int) -> None:
    """Tether what this process forks to it, and what that forks, so many times deep.

    What lies deeper, such as the forks of a node's handler, is left alone.
    """
    generation, parent = 0, os.getpid()

    def remember_parent() -> None:
        nonlocal parent
        parent = os.getpid()

    def follow_parent() -> None:
        nonlocal generation
        generation += 1
        if generation <= generations:
            tether(parent, on_death=signal.SIGKILL)

    os.register_at_fork(before=remember_parent, after_in_child=follow_parent)


def tethered(argv: list[str], *, on_death: signal.Signals) -> list[str]:
    """Wrap a command line so that the process is tethered to the caller."""
    prefix = [sys.executable, "-m", __name__, on_death.name, str(os.getpid())]
    return [*prefix, *argv]


def main() -> None:
    """Tether, then become the program named on the command line."""
    death_signal, parent, *argv = sys.argv[1:]
    tether(int(parent), on_death=signal.Signals[death_signal])
    os.execvp(argv[0], argv)  # noqa: S606 - the caller's own command line


if __name__ == "__main__":
    main()
