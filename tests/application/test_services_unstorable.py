"""ST-05: what a handler brings that no database keeps fails its node, not the worker.

On a worker, since there a boundary that cannot be stored would be tried for ever.
"""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import START, Command, GraphBuilder, Interrupt, NodeContext
from stateknot.errors import NodeError
from stateknot.models import Run
from stateknot.selectors import get_run, get_timeline
from stateknot.services import retry_run, start_run
from tests.application.desk import Desk, queued, work

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)
NUL, SURROGATE, LONG = "a\x00b", "a\ud800b", "x" * 5_000


class OddError(Exception):
    """An error of a library: any `code`, any text."""

    def __init__(self, text: str, code: Any) -> None:
        super().__init__(text)
        self.code = code


def run_node(register_only: Any, handler: Callable[..., Any]) -> Run:
    """Run a graph of one node on a worker, to where it rests."""
    builder = GraphBuilder("desk.odd", state=Desk)
    builder.add_node("odd", handler).add_edge(START, "odd")
    register_only(builder.compile())
    run = start_run("desk.odd", {}, thread_id="t")
    work()
    return get_run(run.id)


def assert_failed(run: Run) -> None:
    assert (run.status, run.failed_node) == ("failed", "odd")
    assert queued() == []
    assert get_timeline(run.id)


@pytest.mark.parametrize("text", [NUL, SURROGATE, LONG, ""])
@pytest.mark.parametrize("code", [NUL, SURROGATE, LONG, 7, None, "shop.refused"])
def test_error_of_any_text_and_code_is_a_failure(
    register_only: Any, text: str, code: Any
) -> None:
    def handler(desk: Desk) -> None:
        raise OddError(text, code)

    assert_failed(run_node(register_only, handler))


@pytest.mark.parametrize("code", [NUL, LONG])
def test_node_error_of_any_code_is_a_failure(register_only: Any, code: str) -> None:
    def handler(desk: Desk) -> None:
        raise NodeError(code, "refused")

    assert_failed(run_node(register_only, handler))


@pytest.mark.parametrize(
    "data", [object(), threading.Lock(), NUL, SURROGATE, float("nan"), 2**70, {1: 2}]
)
@pytest.mark.parametrize("name", ["progress", NUL])
def test_event_that_cannot_be_stored_does_not_stop_the_worker(
    register_only: Any, name: str, data: Any
) -> None:
    def handler(desk: Desk, ctx: NodeContext) -> None:
        ctx.emit(name, data)

    run = run_node(register_only, handler)
    assert run.status in ("failed", "completed")
    assert queued() == []


@pytest.mark.parametrize(
    "amount", [Decimal("0.1"), float("nan"), float("inf"), 2**70, "many", object()]
)
def test_usage_that_cannot_be_stored_does_not_stop_the_worker(
    register_only: Any, amount: Any
) -> None:
    def handler(desk: Desk, ctx: NodeContext) -> None:
        ctx.report_usage(tokens=amount)

    run = run_node(register_only, handler)
    assert run.status in ("failed", "completed")
    assert queued() == []


@pytest.mark.parametrize("text", [NUL, SURROGATE, "x" * 201])
@pytest.mark.parametrize("part", ["key", "id", "payload", "default"])
def test_question_that_cannot_be_stored_is_a_failure(
    register_only: Any, part: str, text: str
) -> None:
    def handler(desk: Desk) -> Interrupt:
        return Interrupt(**{"payload": {}, part: text})

    run = run_node(register_only, handler)
    if part in ("payload", "default") and text not in (NUL, SURROGATE):
        assert run.status == "interrupted"
    else:
        assert_failed(run)


@pytest.mark.parametrize("output", [NUL, SURROGATE, float("nan"), object(), 2**70])
def test_output_that_cannot_be_stored_is_a_failure(
    register_only: Any, output: Any
) -> None:
    def handler(desk: Desk) -> Command:
        return Command(output=output)

    assert_failed(run_node(register_only, handler))


@pytest.mark.parametrize("value", [NUL, SURROGATE, object(), threading.Lock()])
def test_update_that_cannot_be_stored_is_a_failure(
    register_only: Any, value: Any
) -> None:
    def handler(desk: Desk) -> dict[str, Any]:
        return {"log": [value]}

    assert_failed(run_node(register_only, handler))


def test_failure_of_an_unstorable_value_can_be_retried(register_only: Any) -> None:
    values: list[Any] = [object(), "kept"]

    def handler(desk: Desk) -> dict[str, Any]:
        return {"log": [values.pop(0)]}

    assert_failed(run_node(register_only, handler))
    retry_run("t")
    work()
    assert Run.objects.get().status == "completed"
