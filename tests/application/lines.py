"""A graph that comes in revisions: a line of nodes under one id.

For the tests of runs that are moved between revisions.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import START, GraphBuilder, Interrupt, NodeContext, append
from stateknot.models import Run
from stateknot.selectors import get_run, get_state
from stateknot.services import start_run
from tests.application.desk import note, work

GRAPH = "desk.move"


class State(BaseModel):
    log: Annotated[list[str], append] = []


class WithDefault(State):
    k: int = 0


class WithRequired(State):
    k: int


def ask(_state: Any, ctx: NodeContext) -> Any:
    if not ctx.has_resume:
        return Interrupt("well?")
    return {"log": [f"{ctx.node_id}={ctx.resume}"]}


def fail(_state: Any) -> None:
    raise ValueError("a bug")


def build(*names: str, state: Any = State, **handlers: Any) -> Any:
    """A line of nodes; those without a handler log their name."""
    builder = GraphBuilder(GRAPH, state=state)
    for name in names:
        builder.add_node(name, handlers.get(name, note(name)))
    return builder.add_sequence(START, *names).compile()


def begun(graph: Any, thread_id: str = "t") -> Run:
    """A run of `graph`, brought to rest."""
    run = start_run(GRAPH, {}, thread_id=thread_id)
    work()
    assert get_run(run.id).revision.digest == graph.digest
    return get_run(run.id)


def log_of(thread_id: str = "t") -> list[str]:
    return list(get_state(thread_id).values.log)
