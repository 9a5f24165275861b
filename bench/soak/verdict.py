"""What became of the runs of a soak: lost, doubled, stuck, or well.

Reads rows, starts nothing. Each fault is told on standard error.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass

from bench.soak.crowd import thread_of, width_of
from bench.soak.graphs import SOAK, expected_log
from bench.soak.models import Effect
from stateknot.models import Checkpoint, JournalEvent, Run
from stateknot.selectors import get_state


@dataclass(slots=True)
class Verdict:
    """Runs by what is wrong with them; none is counted twice under one word."""

    lost: int = 0
    doubled: int = 0
    stuck: int = 0

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.stuck)


def judge(runs: int) -> Verdict:
    """Look at every run that was started."""
    found = {run.thread.key: run for run in _rows()}
    effects = _effects()
    verdict = Verdict()
    for number in range(runs):
        thread = thread_of(number)
        run = found.get(thread)
        if run is None:
            verdict.lost += _tell(thread, "does not exist")
        elif not run.is_terminal:
            verdict.stuck += _tell(thread, f"is {run.status} since {run.woken_at}")
        else:
            width = width_of(number)
            verdict.lost += _tell(thread, *_find_losses(run, width, effects))
            verdict.doubled += _tell(thread, *_find_doubles(run, width, effects))
    return verdict


def _rows() -> list[Run]:
    rows = Run.objects.filter(graph_id=SOAK, namespace="")
    return list(rows.select_related("thread", "revision"))


def _effects() -> dict[str, Counter[tuple[str, str]]]:
    """How often each effect happened: by run, then node and key."""
    found: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for run_id, node, key in Effect.objects.values_list("run_id", "node", "key"):
        found[run_id][node, key] += 1
    return found


def _find_losses(
    run: Run, width: int, effects: dict[str, Counter[tuple[str, str]]]
) -> list[str]:
    """What is not there: the end, a part of the log, an effect, a link of history."""
    if run.status != Run.Status.COMPLETED:
        return [f"ended {run.status}: {run.error}"]
    faults = []
    missing = Counter(expected_log(width)) - Counter(_log(run))
    if missing:
        faults.append(f"has lost {dict(missing)}")
    nodes = Counter(node for node, _ in effects[str(run.id)])
    if Counter({"part": width, "book": 1, "end": 1}) - nodes:
        faults.append(f"had effects {dict(nodes)} of {width} parts")
    rows = list(
        Checkpoint.objects.filter(thread=run.thread)
        .order_by("sequence")
        .values_list("sequence", "lineage", "id", "parent_id")
    )
    parents = [None, *(row[2] for row in rows[:-1])]
    chain = [(number, 0, parent) for number, parent in enumerate(parents)]
    if [(row[0], row[1], row[3]) for row in rows] != chain:
        faults.append("has a gap or a fork in its history")
    entries = JournalEvent.objects.filter(run=run).order_by("number")
    numbers = list(entries.values_list("number", flat=True))
    if numbers != list(range(run.next_journal)):
        faults.append("has a gap in its journal")
    return faults


def _find_doubles(
    run: Run, width: int, effects: dict[str, Counter[tuple[str, str]]]
) -> list[str]:
    """What is there twice: a part of the log, a booking, a key of a part."""
    faults = []
    extra = Counter(_log(run)) - Counter(expected_log(width))
    if extra:
        faults.append(f"has {dict(extra)} once more")
    of_run = effects[str(run.id)]
    booked = sum(count for (node, _), count in of_run.items() if node == "book")
    if booked > 1:
        faults.append(f"was booked {booked} times")
    keys = Counter(node for node, _ in of_run)
    if keys["part"] > width or keys["end"] > 1:
        faults.append(f"had effects under {dict(keys)} keys, of {width} parts")
    return faults


def _log(run: Run) -> list[str]:
    state = get_state(run.thread.key)
    return list(state.values.log) if state else []


def _tell(thread: str, *faults: str) -> int:
    for fault in faults:
        sys.stderr.write(f"soak: {thread} {fault}\n")
    return int(bool(faults))
