"""Mending a state that its model no longer admits: by the edit that makes it fit.

A validator's body is no part of a revision, so a deploy may make it stricter than the
states that runs stand at.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, create_model, field_validator

from stateknot import START, CompiledGraph, GraphBuilder
from stateknot.errors import NodeFailedError, StateError


def model_of(least: int) -> type[BaseModel]:
    """A state whose count must be at least `least`; its schema does not say so."""

    def check(value: int) -> int:
        if value < least:
            raise ValueError(f"must be {least} or more")
        return value

    validators: dict[str, Any] = {"check": field_validator("count")(check)}
    return create_model("Counted", count=(int, 0), __validators__=validators)


def counting(state: Any) -> dict[str, int]:
    if state.count < 5:
        raise ValueError("too few")
    return {"count": state.count + 1}


def graph_of(least: int, checkpointer: Any) -> CompiledGraph:
    builder = GraphBuilder("tests.mending", state=model_of(least))
    builder.add_node("count", counting).add_edge(START, "count")
    return builder.compile().with_checkpointer(checkpointer)


@pytest.fixture
def outgrown(checkpointer: Any) -> CompiledGraph:
    """A failed thread whose state the model's validator now refuses."""
    with pytest.raises(NodeFailedError):
        graph_of(0, checkpointer).run_with_thread("t", {})
    return graph_of(3, checkpointer)


def test_edit_to_a_value_that_fits_mends_the_state(outgrown: CompiledGraph) -> None:
    """Row VD-06: a state that no longer fits is a clear error, and can be mended."""
    snapshot = outgrown.get_state("t")
    assert snapshot is not None
    assert "must be 3 or more" in snapshot.metadata["state_error"]
    outgrown.update_state("t", {"count": 7})
    assert outgrown.retry("t").state.count == 8


def test_edit_that_does_not_mend_it_is_refused(outgrown: CompiledGraph) -> None:
    with pytest.raises(StateError, match="must be 3 or more"):
        outgrown.update_state("t", {"count": 2})
    assert len(outgrown.get_state_history("t")) == 2
