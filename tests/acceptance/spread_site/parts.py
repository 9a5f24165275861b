"""A fan-out whose activations wait until all of them are running at once.

Each makes a file in the state's folder that is named after its place and holds its
process; so a step whose activations run one after the other never ends. While the file
`hold` is there, they wait behind that too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    CompiledGraph,
    GraphBuilder,
    NodeContext,
    Send,
    append,
)

GRAPH = "spread.meeting"
PATIENCE = 60.0


class Meeting(BaseModel):
    folder: str
    parties: int
    log: Annotated[list[str], append] = []


def invite(meeting: Meeting) -> Command:
    return Command(goto=[Send("meet", place) for place in range(meeting.parties)])


def meet(meeting: Meeting, ctx: NodeContext) -> dict[str, Any]:
    folder = Path(meeting.folder)
    here = folder / f"place-{ctx.send_arg}-{os.getpid()}"
    here.touch()
    _wait(lambda: len(places(folder)) == meeting.parties)
    _wait(lambda: not (folder / "hold").exists())
    return {"log": [str(ctx.send_arg)]}


def places(folder: Path) -> set[str]:
    """The places that somebody came to."""
    return {path.name.split("-")[1] for path in folder.glob("place-*")}


def processes(folder: Path, place: int | str = "*") -> list[int]:
    """The processes that came to a place."""
    return [int(path.name.split("-")[2]) for path in folder.glob(f"place-{place}-*")]


def _wait(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the others never came")
        time.sleep(0.02)


def build() -> CompiledGraph:
    builder = GraphBuilder(GRAPH, state=Meeting)
    builder.add_command_node("invite", invite, destinations=["meet"])
    builder.add_node("meet", meet).add_edge(START, "invite")
    builder.add_node("close", lambda _meeting: {"log": ["closed"]})
    builder.add_edge("meet", "close")
    return builder.compile().with_parallel(spread=True)
