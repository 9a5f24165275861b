"""What a caller once said of a run holds for the run, however often it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from stateknot import START, Command, CompiledGraph, GraphBuilder, Interrupt
from stateknot.errors import RecursionLimitError


class Count(BaseModel):
    count: int = 0


def step(state: Any, ctx: Any) -> Any:
    """Ask once, at the fourth superstep; go on counting for ever."""
    if state.count == 3 and not ctx.has_resume:
        return Interrupt("go on?")
    return {"count": state.count + 1}


def endless(checkpointer: Any) -> CompiledGraph:
    builder = GraphBuilder("tests.run_options", state=Count)
    builder.add_node("step", step).add_edge(START, "step")
    builder.add_conditional_edges("step", lambda _state: "more", {"more": "step"})
    builder.with_recursion_limit(2)
    return builder.compile().with_checkpointer(checkpointer)


def test_limit_given_at_one_resume_holds_at_the_next(checkpointer: Any) -> None:
    """Row IH-10: options are the run's own. (Breakpoints are not among them.)"""
    graph = endless(checkpointer)
    with pytest.raises(RecursionLimitError, match="limit of 2"):
        graph.run_with_thread("t", {})
    assert graph.resume("t", step_limit=5).is_interrupted
    with pytest.raises(RecursionLimitError, match="limit of 5"):
        graph.resume("t", Command(resume=True))
    stood = graph.get_state("t")
    assert stood is not None
    assert stood.values.count == 5
