"""What must be true of a walk behind any fault, read from rows and effects.

Run as a module (`python -m ... THREAD FOLDER`) it waits for the walk's end and looks at
the database of its own environment: for databases that the test's process does not
have.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.acceptance.matrix_site.walk import BOOKED, NODES, PATIENCE, read_effects


def check_walk(thread_id: str, folder: Path) -> None:
    """Fail unless the walk ended well, once, with one history.

    Every node's effect is there at least once, always under the same key; a booking is
    there exactly once.
    """
    from stateknot.models import Run
    from stateknot.selectors import get_state
    from tests.acceptance.matrix_site.models import Booking

    (run,) = Run.objects.filter(thread__key=thread_id)
    assert run.status == "completed", run.error
    check_history(run)
    state = get_state(thread_id)
    assert state is not None
    logged = [name for name in NODES if name != "nap"]
    assert state.values.log == logged
    effects = read_effects(folder)
    assert set(effects) == set(NODES)
    keys = {node: set(found) for node, found in effects.items()}
    assert all(len(found) == 1 for found in keys.values()), keys
    assert len(set.union(*keys.values())) == len(NODES)
    booked = Booking.objects.filter(run_id=str(run.id)).values_list("node", flat=True)
    assert sorted(booked) == sorted(BOOKED)


def check_history(run: object) -> None:
    """Fail where a boundary is missing or double, or the journal has a gap."""
    from stateknot.models import Checkpoint, JournalEvent

    thread = run.thread  # type: ignore[attr-defined]
    rows = list(Checkpoint.objects.filter(thread=thread).order_by("sequence"))
    assert [row.sequence for row in rows] == list(range(len(rows)))
    assert {row.lineage for row in rows} == {0}
    assert [row.parent_id for row in rows] == [None, *(row.id for row in rows[:-1])]
    entries = JournalEvent.objects.filter(run=run).order_by("number")
    assert [entry.number for entry in entries] == list(range(len(entries)))


def main() -> None:
    """Wait for the end of the walk of a thread, then check it."""
    import django

    django.setup()
    from django.db import OperationalError, connection

    from stateknot.models import Run

    thread_id, folder = sys.argv[1:]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if Run.objects.get(thread__key=thread_id).is_terminal:
                break
        except OperationalError:
            connection.close()
        time.sleep(0.1)
    check_walk(thread_id, Path(folder))


if __name__ == "__main__":
    main()
