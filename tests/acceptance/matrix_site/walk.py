"""A graph with a line, a fan-out, a join and a timer, and a fault at a place of choice.

Every node leaves a line in the file `effects` of the state's folder: its effect on the
world. Those of `BOOKED` are transactional and leave a row as well. The node that the
state names as `place` then meets the `fault`, the first time it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import (
    START,
    CompiledGraph,
    GraphBuilder,
    NodeContext,
    Timer,
    append,
)

WALK = "matrix.walk"
NODES = ("before", "line", "left", "right", "joined", "nap", "after")
BOOKED = ("line", "left")
NAP = timedelta(seconds=0.2)
PATIENCE = 60.0
CUT = "stateknot-cut"
"""What a proxy listens for; see `tests/acceptance/cutting_proxy.py`."""


class Walk(BaseModel):
    folder: str
    place: str = ""
    fault: str = ""
    log: Annotated[list[str], append] = []


def read_effects(folder: Path) -> dict[str, list[str]]:
    """The idempotency key of each effect, by node, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    path = folder / "effects"
    for line in path.read_text().splitlines() if path.exists() else ():
        node, key, _ = line.split()
        found[node].append(key)
    return found


def find_holder(folder: Path) -> int | None:
    """The process in which a node waits for the file `go`, None before it does."""
    path = folder / "held"
    return int(path.read_text()) if path.exists() else None


def step(walk: Walk, ctx: NodeContext) -> dict[str, Any]:
    """Leave the effect, meet the fault, log the node."""
    _leave(walk, ctx)
    if ctx.node_id in BOOKED:
        _book(ctx)
    is_first = len(read_effects(Path(walk.folder))[ctx.node_id]) == 1
    if ctx.node_id == walk.place and is_first:
        FAULTS[walk.fault](Path(walk.folder))
    return {"log": [ctx.node_id]}


def nap(walk: Walk, ctx: NodeContext) -> Timer:
    """Leave the effect and complete into a timer."""
    _leave(walk, ctx)
    return Timer(NAP)


def _leave(walk: Walk, ctx: NodeContext) -> None:
    line = f"{ctx.node_id} {ctx.idempotency_key} {os.getpid()}\n"
    # One write of an append-only file: lines of several processes do not mix.
    with (Path(walk.folder) / "effects").open("a") as file:
        file.write(line)


def _book(ctx: NodeContext) -> None:
    from tests.acceptance.matrix_site.models import Booking

    Booking.objects.create(run_id=ctx.run_id, node=ctx.node_id)


def _hold(folder: Path) -> None:
    """Say where this runs, and wait for the test."""
    waiting = folder / "held.new"
    waiting.write_text(str(os.getpid()))
    waiting.rename(folder / "held")
    deadline = time.monotonic() + PATIENCE
    while not (folder / "go").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the test never let go")
        time.sleep(0.02)


def _exit(_folder: Path) -> None:
    sys.exit(3)


def _run_out_of_memory(_folder: Path) -> None:
    """Be killed as the kernel does it: at once, in the middle of the code."""
    os.kill(os.getpid(), signal.SIGKILL)


def _announce_cut(_folder: Path) -> None:
    """Tell the proxy that this connection's next commit is the one to cut."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT '{CUT}'")


FAULTS = {
    "hold": _hold,
    "exit": _exit,
    "memory": _run_out_of_memory,
    "cut": _announce_cut,
}


def build_walk() -> CompiledGraph:
    """before, line, then left and right side by side, joined, nap, after."""
    builder = GraphBuilder(WALK, state=Walk)
    for name in NODES:
        handler = nap if name == "nap" else step
        builder.add_node(name, handler, transactional=name in BOOKED)
    builder.add_sequence(START, "before", "line").add_edge("line", ["left", "right"])
    builder.add_waiting_edge(["left", "right"], "joined")
    builder.add_sequence("joined", "nap", "after")
    return builder.with_parallel().compile()
