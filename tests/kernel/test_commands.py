"""What authors and callers write down: commands, inputs, questions."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from stateknot.kernel.commands import (
    Command,
    GraphInput,
    Interrupt,
    ResumeTarget,
    Send,
)
from stateknot.kernel.vocabulary import START, UNSET


def test_command_holds_what_it_was_given() -> None:
    """Scenario 180: goto, Send, update and resume, alone and together."""
    assert Command(goto="a").goto == "a"
    assert Command(goto=[Send("a", 1), "b"]).goto == [Send("a", 1), "b"]
    assert Command(resume=None).resume is None
    together = Command(update={"x": 1}, goto="a", resume=2)
    assert (together.update, together.goto, together.resume) == ({"x": 1}, "a", 2)


def test_empty_command_says_nothing() -> None:
    """Scenario 180: an answer that is None differs from none."""
    empty = Command()
    assert (empty.update, empty.goto, empty.route, empty.answers) == (None,) * 4
    assert (empty.resume, empty.output) == (UNSET, UNSET)


def test_question_keeps_an_explicit_id() -> None:
    """Scenario 180; the ids of others are given where they are stored."""
    assert Interrupt("?", id="mine").id == "mine"
    assert Interrupt("?").id is None


def test_inputs_name_their_target() -> None:
    assert GraphInput.start(3) == GraphInput(START, 3)
    assert GraphInput.new("a", None).payload is None
    assert GraphInput.node("a").payload is UNSET


def test_target_of_a_resume() -> None:
    assert ResumeTarget.latest().checkpoint_id is None
    assert ResumeTarget.checkpoint("c").checkpoint_id == "c"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Command(), "goto"),
        (Interrupt(), "node"),
        (Send("a"), "node"),
        (GraphInput("a"), "target"),
    ],
)
def test_values_cannot_be_changed(value: object, name: str) -> None:
    """A handler's result is read later, maybe more than once."""
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, "b")
