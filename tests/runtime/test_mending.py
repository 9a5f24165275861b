"""Mending a state that its model no longer admits: by the edit that makes it fit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from stateknot import START, CompiledGraph, GraphBuilder
from stateknot.errors import NodeFailedError, StateError


class Before(BaseModel):
    count: int = 0


class After(BaseModel):
    count: int = 0
    owner: str


def counting(state: Any) -> dict[str, int]:
    if state.count < 5:
        raise ValueError("too few")
    return {"count": state.count + 1}


def graph_of(model: type[BaseModel], checkpointer: Any) -> CompiledGraph:
    builder = GraphBuilder("tests.mending", state=model)
    builder.add_node("count", counting).add_edge(START, "count")
    return builder.compile().with_checkpointer(checkpointer)


@pytest.fixture
def outgrown(checkpointer: Any) -> CompiledGraph:
    """A failed thread whose state lacks a field that the model now requires."""
    with pytest.raises(NodeFailedError):
        graph_of(Before, checkpointer).run_with_thread("t", Before())
    return graph_of(After, checkpointer)


def test_edit_that_gives_the_missing_field_mends_the_state(
    outgrown: CompiledGraph,
) -> None:
    """Row VD-06: a state that no longer fits is a clear error, and can be mended."""
    snapshot = outgrown.get_state("t")
    assert snapshot is not None
    assert "owner" in snapshot.metadata["state_error"]
    outgrown.update_state("t", {"count": 7, "owner": "audit"})
    mended = outgrown.get_state("t")
    assert mended is not None
    assert mended.values == After(count=7, owner="audit")


def test_edit_that_leaves_the_field_out_is_refused(outgrown: CompiledGraph) -> None:
    with pytest.raises(StateError, match="owner"):
        outgrown.update_state("t", {"count": 7})
    assert len(outgrown.get_state_history("t")) == 2
