"""The recorded compositions with nodes that say where they ran.

Each call of a node adds a line to the file `calls` of the state's folder: node,
superstep from 0, process. While the file `hold` is there, `work` waits. What a run used
stands in the file `usage`; while it does not, nobody can tell.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from stateknot import Command, CompiledGraph, NodeContext, NodeError, Timer
from stateknot.selectors import get_run, get_state
from tests.kernel.composition_samples import compose_vector
from tests.kernel.graph_samples import composition_vectors

GRAPH = "composition.loop"
PATIENCE = 60.0


class Step(BaseModel):
    folder: str
    step: str = "initial"
    stop_after: int = 99


def say(state: Step, ctx: NodeContext) -> None:
    assert ctx.namespace == ()
    with (Path(state.folder) / "calls").open("a") as file:
        file.write(f"{ctx.node_id} {ctx.step - 1} {os.getpid()} {ctx.graph}\n")


def work(state: Step, ctx: NodeContext) -> dict[str, str]:
    say(state, ctx)
    deadline = time.monotonic() + PATIENCE
    while (Path(state.folder) / "hold").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the test never let go")
        time.sleep(0.02)
    return {"step": f"iteration-{ctx.source.iteration}"}


def decide(state: Step, ctx: NodeContext) -> Command:
    say(state, ctx)
    assert state.step == f"iteration-{ctx.source.iteration}"
    accepts = ctx.source.iteration + 1 >= state.stop_after
    return Command(route="accept" if accepts else "retry")


def finish(state: Step, ctx: NodeContext) -> Command:
    say(state, ctx)
    return Command(output={"ok": True})


def exhausted(state: Step, ctx: NodeContext) -> None:
    say(state, ctx)
    raise NodeError("graph.loop_exhausted", "no iteration accepted")


def pause(state: Step, ctx: NodeContext) -> Timer:
    say(state, ctx)
    return Timer(timedelta(hours=1))


LOOP = {"work": work, "decide": decide, "finish": finish, "exhausted": exhausted}
WAIT = {"pause": pause, "finish": finish}


def build(vector: str) -> CompiledGraph:
    """The composition of that name, under one graph id."""
    return CompiledGraph.from_definition(
        compose_vector(composition_vectors()[vector]),
        handlers=WAIT if vector.startswith("wait") else LOOP,
        state=Step,
        graph_id=GRAPH,
    )


def read_usage(run_id: str) -> Any:
    """What the run used, or FileNotFoundError while nobody can tell."""
    state: Any = get_state(get_run(run_id).thread.key)
    return json.loads((Path(state.values.folder) / "usage").read_text())
