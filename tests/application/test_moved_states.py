"""What a moved run's state is: its new form in every later reading.

Row ids are those of cases/field_reports.md.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from stateknot import append
from stateknot.errors import RevisionMoveError
from stateknot.models import Checkpoint
from stateknot.registry import register
from stateknot.selectors import get_run, get_state, get_state_history
from stateknot.services import fork_thread, move_run, plan_move, resume_run
from tests.application.desk import work
from tests.application.lines import State, WithDefault, ask, begun, build, log_of

pytestmark = pytest.mark.django_db(transaction=True)


class WithNotes(State):
    notes: Annotated[list[str], append] = []


class WithStrings(State):
    k: str = ""


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    log: Annotated[list[str], append] = []


def set_k(_state: Any) -> Any:
    return {"k": 5}


def take_notes(_state: Any) -> Any:
    return {"notes": ["old"]}


def shown() -> Any:
    return get_state("t").values


def test_field_that_was_taken_out_does_not_come_back(register_only: Any) -> None:
    """VD-06: two moves on, the field is a new one, not what an old revision left."""
    first = build("a", "b", "c", a=set_k, b=ask, state=WithDefault)
    second = build("a", "b", "c", b=ask)
    third = build("a", "b", "c", "d", b=ask, state=WithStrings)
    register_only(first)
    run = begun(first)
    register(second, superseded=[first])
    assert plan_move(str(run.id), second.digest).dropped == ("k",)
    move_run(str(run.id), second.digest)
    assert shown() == State()
    register(third, superseded=[first, second])
    move_run(str(run.id), third.digest)
    assert shown() == WithStrings(k="")
    resume_run("t", 1)
    work()
    assert shown() == WithStrings(log=["b=1", "c", "d"], k="")


def test_checkpoints_before_a_move_keep_what_they_held(register_only: Any) -> None:
    """VD-06: the old checkpoint is unchanged, and still read."""
    first = build("a", "b", a=set_k, b=ask, state=WithDefault)
    second = build("a", "b", b=ask)
    register_only(first)
    run = begun(first)
    before = {str(row.id): bytes(row.digest) for row in Checkpoint.objects.all()}
    register(second, superseded=[first])
    move_run(str(run.id), second.digest)
    rows = Checkpoint.objects.filter(id__in=before)
    assert {str(row.id): bytes(row.digest) for row in rows} == before
    assert len(list(get_state_history("t"))) == len(before) + 1


def test_accumulated_field_that_was_taken_out_is_not_read(register_only: Any) -> None:
    """VD-06: what had been appended to it stays with the old checkpoints."""
    first = build("a", "b", "c", a=take_notes, b=ask, state=WithNotes)
    second = build("a", "b", "c", b=ask)
    third = build("a", "b", "c", "d", b=ask, d=take_notes, state=WithNotes)
    register_only(first)
    run = begun(first)
    for graph in (second, third):
        register(graph, superseded=[first])
        move_run(str(run.id), graph.digest)
    resume_run("t", 1)
    work()
    assert shown() == WithNotes(log=["b=1", "c"], notes=["old"])


def test_model_that_admits_no_other_field_takes_a_migrated_state(
    register_only: Any,
) -> None:
    """VD-06: the field that a migration takes out is gone for every later reader."""
    first = build("a", "b", a=set_k, b=ask, state=WithDefault)
    second = build("a", "b", b=ask, state=Closed)
    register_only(first)
    run = begun(first)
    register(second, superseded=[first])
    with pytest.raises(RevisionMoveError, match=r"does not fit.*k"):
        move_run(str(run.id), second.digest)
    move_run(str(run.id), second.digest, migrate=lambda v: {"log": v["log"]})
    assert shown() == Closed()
    resume_run("t", 1)
    work()
    assert get_run(run.id).status == "completed"
    assert log_of() == ["b=1"]


def test_fork_of_a_moved_thread_has_its_new_form(register_only: Any) -> None:
    """VD-06: a fork begins with the moved state, whole."""
    first = build("a", "b", a=set_k, b=ask, state=WithDefault)
    second = build("a", "b", b=ask)
    register_only(first)
    run = begun(first)
    register(second, superseded=[first])
    move_run(str(run.id), second.digest)
    fork_thread("t", "copy")
    assert get_state("copy").values == State()
    resume_run("copy", 1)
    work()
    assert log_of("copy") == ["b=1"]
