"""Graphs for the tests of services and selectors, and a worker that can be called.

`work` takes wake-ups from the real queue table and calls the real task, one after the
other, until the queue is empty: what a cluster does, without its processes.
"""

from __future__ import annotations

from typing import Annotated, Any

from django_q.models import OrmQ
from pydantic import BaseModel

from stateknot import END, START, GraphBuilder, Interrupt, NodeContext, add, append
from stateknot.runtime.waking import TASK
from stateknot.tasks import drive

ASK, ASK_TWO, LINE, BREAK = "desk.ask", "desk.ask_two", "desk.line", "desk.break"
MOST_WAKES = 50


class Desk(BaseModel):
    total: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []
    is_broken: bool = False


class Approval(BaseModel):
    approved: bool


def note(name: str) -> Any:
    """Make a handler that logs its name."""
    return lambda _desk: {"log": [name]}


def ask(desk: Desk, ctx: NodeContext) -> Any:
    """Ask for a number and add it."""
    if not ctx.has_resume:
        return Interrupt({"question": ctx.node_id}, schema=int)
    return {"log": [f"{ctx.node_id}={ctx.resume}"], "total": ctx.resume}


def break_if_broken(desk: Desk) -> Any:
    """Fail until somebody repairs the state."""
    if desk.is_broken:
        raise ValueError("the desk is broken")
    return {"log": ["worked"]}


def build_line(version: str = "1.0.0") -> Any:
    builder = GraphBuilder(LINE, state=Desk, version=version)
    for name in ("first", "second", "third"):
        builder.add_node(name, note(name))
    return builder.add_sequence(START, "first", "second", "third").compile()


def build_ask() -> Any:
    builder = GraphBuilder(ASK, state=Desk)
    builder.add_node("ask", ask).add_node("after", note("after"))
    return builder.add_sequence(START, "ask", "after").compile()


def build_ask_two() -> Any:
    """Two questions of one superstep, side by side."""
    builder = GraphBuilder(ASK_TWO, state=Desk)
    builder.add_node("left", ask).add_node("right", ask).add_node("end", note("end"))
    builder.add_edge(START, ["left", "right"])
    builder.add_waiting_edge(["left", "right"], "end").with_parallel()
    return builder.compile()


def build_break() -> Any:
    builder = GraphBuilder(BREAK, state=Desk)
    builder.add_node("before", note("before")).add_node("work", break_if_broken)
    builder.add_sequence(START, "before", "work")
    return builder.add_edge("work", END).compile()


def build_all() -> list[Any]:
    return [build_line(), build_ask(), build_ask_two(), build_break()]


def queued() -> list[str]:
    """The run of each wake-up in the queue, oldest first."""
    tasks = [row.task for row in OrmQ.objects.order_by("id")]
    assert {task["func"] for task in tasks} <= {TASK}
    return [task["args"][0] for task in tasks]


def work() -> int:
    """Take wake-ups until there are none; gives how many there were."""
    count = 0
    while (row := OrmQ.objects.order_by("id").first()) is not None:
        run_id = row.task["args"][0]
        row.delete()
        drive(run_id)
        count += 1
        assert count < MOST_WAKES, "the run wakes itself for ever"
    return count
