"""The graph of the soak: a fan-out, a join, a transactional node, a timer, a question.

Handlers take some time, so that a kill finds one at work.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    GraphBuilder,
    Interrupt,
    NodeContext,
    Send,
    Timer,
    append,
)
from stateknot.registry import register

SOAK = "bench.soak"
PAUSE_SECONDS = 0.02
NAP = timedelta(seconds=1)


class Load(BaseModel):
    """How many parts there are, and what was done."""

    width: int
    log: Annotated[list[str], append] = []


def expected_log(width: int) -> list[str]:
    """What a finished run has in its log, in order."""
    parts = [f"part {number}" for number in range(width)]
    return [*parts, "joined", "booked", "answered 7", "ended"]


def _leave(ctx: NodeContext) -> None:
    from bench.soak.models import Effect

    time.sleep(PAUSE_SECONDS)
    Effect.objects.create(run_id=ctx.run_id, node=ctx.node_id, key=ctx.idempotency_key)


def begin(load: Load) -> Command:
    """Fan out."""
    return Command(goto=[Send("part", number) for number in range(load.width)])


def part(_load: Load, ctx: NodeContext) -> dict[str, Any]:
    """One of the parts; at least once, always under the same key."""
    _leave(ctx)
    return {"log": [f"part {ctx.send_arg}"]}


def joined(_load: Load) -> dict[str, Any]:
    """Once, behind all parts."""
    return {"log": ["joined"]}


def book(_load: Load, ctx: NodeContext) -> dict[str, Any]:
    """Transactional: its row and its result are there together, once."""
    _leave(ctx)
    return {"log": ["booked"]}


def nap(_load: Load) -> Timer:
    """Wait without a process."""
    return Timer(NAP)


def ask(_load: Load, ctx: NodeContext) -> Any:
    """Ask for a number."""
    if not ctx.has_resume:
        return Interrupt("How many?", schema=int)
    return {"log": [f"answered {ctx.resume}"]}


def end(_load: Load, ctx: NodeContext) -> dict[str, Any]:
    """The last effect."""
    _leave(ctx)
    return {"log": ["ended"]}


def build_soak() -> Any:
    """Build the graph."""
    builder = GraphBuilder(SOAK, state=Load)
    builder.add_command_node("begin", begin, destinations=["part"])
    builder.add_node("part", part).add_node("joined", joined)
    builder.add_node("book", book, transactional=True)
    builder.add_node("nap", nap).add_node("ask", ask).add_node("end", end)
    builder.add_edge(START, "begin").add_waiting_edge(["part"], "joined")
    builder.add_sequence("joined", "book", "nap", "ask", "end")
    return builder.with_parallel(max_concurrency=4).compile()


graph = register(build_soak())
