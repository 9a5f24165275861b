"""How what a handler returned is understood, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Command, Interrupt, Send, Timer
from stateknot.kernel.limits import MAXIMUM_VALUE_BYTES
from stateknot.kernel.outcome import (
    Asked,
    Completed,
    label_text,
    read_result,
    to_json_value,
)
from stateknot.kernel.vocabulary import UNSET
from tests.kernel.state_samples import Line, Mood, Tally, json_values


class Node(Enum):
    NEXT = "next"
    THIRD = 3


def completed(result: Any) -> Completed:
    outcome = read_result("work", result)
    assert isinstance(outcome, Completed)
    return outcome


def questions(result: Any) -> tuple[Interrupt, ...]:
    outcome = read_result("work", result)
    assert isinstance(outcome, Asked)
    return outcome.interrupts


@pytest.mark.parametrize("update", [None, {}, {"note": "x"}, Tally(note="x")])
def test_update_is_passed_on_as_it_is(update: Any) -> None:
    """ST-09."""
    assert completed(update) == Completed(update=update)


@pytest.mark.parametrize(
    ("goto", "expected"),
    [
        (None, None),
        ("b", ("b",)),
        (["b", "b"], ("b", "b")),
        ([], ()),
        ((Node.NEXT, Node.THIRD), ("next", "3")),
        (Send("b"), (Send("b", None),)),
        ([Send(Node.NEXT, (1, 2))], (Send("next", [1, 2]),)),  # type: ignore[arg-type]
    ],
)
def test_goto_is_read_in_its_order(goto: Any, expected: Any) -> None:
    assert completed(Command(goto=goto)).goto == expected


def test_command_carries_update_route_and_output() -> None:
    command = Command(update={"note": "x"}, route=Node.NEXT, output=Line(tags={"t"}))  # type: ignore[arg-type]
    outcome = completed(command)
    assert (outcome.update, outcome.route) == ({"note": "x"}, "next")
    assert outcome.output == {"sku": "", "count": 0, "tags": ["t"]}
    assert completed(Command()).output is UNSET
    assert completed(Command(output=None)).output is None


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("text", "str"),
        (7, "int"),
        (object(), "object"),
        ({"a"}, "set"),
        ([], "nothing"),
        ([Send("b")], "Send"),
        ([Interrupt("?"), {"a": 1}], "dict"),
        (Command(goto=7), "int"),  # type: ignore[arg-type]
        (Command(goto={"b"}), "set"),  # type: ignore[arg-type]
        (Command(goto=""), "empty"),
        (Command(goto=[Send("b", object())]), "Send"),
        (Command(output=float("nan")), "output"),
        (Interrupt(object()), "question of 'work'"),
        (Interrupt("?", default=object()), "default answer"),
        (Interrupt("?", schema=object()), "answer schema"),
        (Interrupt("?", schema={"enum": [object()]}), "answer schema"),
        (Interrupt("?", expires_in=timedelta(1)), "without a default"),
        (Interrupt("?", expires_in=5, default=1), "expires_in=5"),  # type: ignore[arg-type]
        (Timer("tomorrow"), "tomorrow"),  # type: ignore[arg-type]
        (Timer(datetime(2026, 1, 1)), "time zone"),  # noqa: DTZ001 - the fault itself
    ],
)
def test_result_that_is_none_of_these_is_refused(result: Any, text: str) -> None:
    """ST-05, ST-09: at the node, with what it was."""
    with pytest.raises(StateError, match=text) as caught:
        read_result("work", result)
    assert not isinstance(caught.value.__cause__, KeyError)


def test_question_is_read_in_the_form_that_is_stored() -> None:
    class Answer(BaseModel):
        ok: bool

    asked = Interrupt(
        Line(), schema=Answer, key=Mood.GOOD, expires_in=timedelta(1), default=(1,)
    )
    (question,) = questions(asked)
    assert question.payload == {"sku": "", "count": 0, "tags": []}
    assert question.schema["properties"]["ok"] == {"title": "Ok", "type": "boolean"}
    assert (question.key, question.default) == ("good", [1])
    assert question.node == "work"
    assert type(question.key) is str


@pytest.mark.parametrize(
    ("schema", "kind"), [(int, "integer"), (list[str], "array"), ({"type": "x"}, "x")]
)
def test_answer_schema_of_a_type_is_its_json_schema(schema: Any, kind: str) -> None:
    (question,) = questions(Interrupt("?", schema=schema))
    assert question.schema["type"] == kind


def test_several_questions_need_keys_of_their_own() -> None:
    """IH-04."""
    asked = questions([Interrupt("?", key="a"), Interrupt("?", key="b")])
    assert [question.key for question in asked] == ["a", "b"]
    for keys in (["a", "a"], ["a", None], [None, None]):
        with pytest.raises(StateError, match="key of its own"):
            read_result("work", [Interrupt("?", key=key) for key in keys])


@pytest.mark.parametrize("until", [timedelta(1), datetime(2026, 1, 1, tzinfo=UTC)])
def test_timer_completes_the_node(until: Any) -> None:
    """Decision 4."""
    timer = Timer(until, goto="b")
    assert completed(timer) == Completed(goto=("b",), timer=timer)


@given(json_values)
def test_json_value_is_its_own_form(value: Any) -> None:
    assert to_json_value(value, "here") == value


def test_json_value_shares_nothing_with_what_was_given() -> None:
    """ST-07: two Sends of one list are two lists."""
    shared: list[Any] = [[1]]
    first, second = (to_json_value(shared, "here") for _ in range(2))
    first[0].append(2)
    assert (shared, second) == ([[1]], [[1]])


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _breaking() -> Any:
    yield 1
    raise KeyError("boom")


@pytest.mark.parametrize(
    "value",
    [
        object(),
        _endless(),
        _deep(150),
        _deep(10_000),
        _breaking(),
        "\ud800",
        b"\xff",
        "x" * MAXIMUM_VALUE_BYTES,
        {"a": {1, float("inf")}},
    ],
)
def test_value_without_json_form_is_refused_with_its_place(value: Any) -> None:
    """ST-05, ST-10."""
    with pytest.raises(SerializationError, match=r"^here"):
        to_json_value(value, "here")


@pytest.mark.parametrize(
    ("label", "text"),
    [("a", "a"), (Node.NEXT, "next"), (Node.THIRD, "3"), (True, "True")],
)
def test_label_is_read_as_text(label: Any, text: str) -> None:
    assert label_text(label) == text
