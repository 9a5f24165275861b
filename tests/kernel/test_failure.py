"""Failures as values: whatever was raised can be stored, shown and raised again."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from stateknot.errors import (
    JoinUnsatisfiedError,
    MissingNodeError,
    MissingRouteError,
    NodeError,
    NodeFailedError,
    ReducerError,
    RoutingError,
    StateError,
    UnknownTargetError,
)
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.limits import MAXIMUM_CODE, MAXIMUM_ERROR_TEXT
from stateknot.kernel.profile import check_profile, encode


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class CodedError(Exception):
    def __init__(self, code: Any) -> None:
        super().__init__()
        self.code = code


class TrapError(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError


class HoldingError(Exception):
    def __init__(self) -> None:
        super().__init__(threading.Lock())


def chained() -> Exception:
    error = ValueError("outer")
    error.__cause__ = MuteError()
    return error


def failure_of(error: Exception, **facts: Any) -> NodeFailure:
    return NodeFailure.of(error, node_id="work", activation_id="1:0:work", **facts)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        ValueError("a\x00b\ud800"),
        ValueError("x" * 50_000),
        MuteError(),
        TrapError(),
        HoldingError(),
        CodedError(object()),
        NodeError("bad\x00code\udfff", "text"),
        NodeError("long" * 100, "text"),
        ExceptionGroup("several", [ValueError("one"), MuteError()]),
        chained(),
        RecursionError(),
    ],
)
def test_any_error_has_a_form_that_is_stored(error: Exception) -> None:
    """ST-05."""
    failure = failure_of(error, attempts=2)
    data = failure.to_json()
    check_profile(data, "error")
    assert NodeFailure.from_json(json.loads(encode(data))) == failure
    assert type(error).__name__ in data["type"]
    assert len(data["message"]) <= MAXIMUM_ERROR_TEXT
    assert len(data["code"]) <= MAXIMUM_CODE
    assert data["traceback"]


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "begin" + "x" * 50_000 + "end"
    message = failure_of(ValueError(text)).message
    assert message.startswith("begin")
    assert message.endswith("end")
    assert "50,008 characters" in message


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ValueError(), "node", "node.failed"),
        (NodeError("card.declined", ""), "node", "card.declined"),
        (StateError(""), "node", "state.invalid"),
        (CodedError("invalid"), "node", "node.failed"),
        (CodedError(404), "node", "node.failed"),
        (ValueError(), "reducer", "node.reducer_failed"),
        (ValueError(), "routing", "node.routing_failed"),
        (ValueError(), "missing_route", "node.missing_route"),
        (ValueError(), "join", "graph.join_unsatisfied"),
    ],
)
def test_code_is_that_of_our_errors_or_of_the_kind(
    error: Exception, kind: str, code: str
) -> None:
    """Other libraries use `code` for other things."""
    assert failure_of(error, kind=kind).code == code


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("node", NodeFailedError),
        ("reducer", ReducerError),
        ("routing", RoutingError),
        ("missing_route", MissingRouteError),
        ("unknown_target", UnknownTargetError),
        ("join", JoinUnsatisfiedError),
        ("from a later version", NodeFailedError),
    ],
)
def test_stored_failure_raises_the_error_of_its_kind(
    kind: str, expected: type[Exception]
) -> None:
    failure = NodeFailure.from_json(failure_of(ValueError("x"), kind=kind).to_json())
    error = failure.error(run_id="r")
    assert type(error) is expected
    assert (error.node_id, error.run_id, error.attempts) == ("work", "r", 1)
    assert "x" in str(error)


def test_unknown_target_is_a_missing_node_as_well() -> None:
    error = failure_of(ValueError(""), kind="unknown_target").error()
    assert isinstance(error, MissingNodeError)
    assert error.kind == "MissingNode"


def test_live_failure_raises_from_its_cause() -> None:
    cause = ValueError("x")
    assert failure_of(cause).error().__cause__ is cause


def test_place_tells_whose_code_raised() -> None:
    assert (
        "in router 'pick': x"
        in failure_of(ValueError("x"), place="router 'pick'").message
    )
