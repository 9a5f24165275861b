"""Graphs with a node that a test holds, to kill its process in the middle of it.

The node writes the id of its process into the file `held` of the state's folder, a line
each time it is called, and goes on once the file `go` is there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import START, CompiledGraph, GraphBuilder, append

LINE, FAN = "crash.line", "crash.fan"
PATIENCE = 60.0


class Trace(BaseModel):
    folder: str
    log: Annotated[list[str], append] = []


def note(name: str) -> Any:
    """Make a handler that logs its name, in the state and in a file of that name."""

    def handler(trace: Trace) -> dict[str, Any]:
        write_line(trace, name)
        return {"log": [name]}

    return handler


def write_line(trace: Trace, name: str) -> None:
    with (Path(trace.folder) / name).open("a") as file:
        file.write(f"{os.getpid()}\n")


def hold(trace: Trace) -> dict[str, Any]:
    """Say where this runs, and wait for the test."""
    write_line(trace, "held")
    deadline = time.monotonic() + PATIENCE
    while not (Path(trace.folder) / "go").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the test never let go")
        time.sleep(0.02)
    return {"log": ["hold"]}


def build_line() -> CompiledGraph:
    """before, hold, after: one behind the other."""
    builder = GraphBuilder(LINE, state=Trace)
    builder.add_node("before", note("before")).add_node("hold", hold)
    builder.add_node("after", note("after"))
    return builder.add_sequence(START, "before", "hold", "after").compile()


def build_fan() -> CompiledGraph:
    """quick and hold side by side, then after."""
    builder = GraphBuilder(FAN, state=Trace)
    builder.add_node("hold", hold).add_node("quick", note("quick"))
    builder.add_node("after", note("after"))
    builder.add_edge(START, ["hold", "quick"])
    builder.add_waiting_edge(["hold", "quick"], "after").with_parallel()
    return builder.compile()
