"""What a handler is handed is its own, and what it reports can be stored."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stateknot import (
    END,
    START,
    Command,
    GraphBuilder,
    Interrupt,
    MemoryCheckpointer,
    NodeContext,
    RetryPolicy,
    Send,
)
from stateknot.errors import NodeFailedError
from stateknot.kernel.retry import RetryPolicy as Policy
from tests.kernel.state_samples import Tally

AGAIN = Policy(max_attempts=2, initial_interval=0, jitter=0)


def one_node(handler: Any, **options: Any) -> Any:
    builder = GraphBuilder("sample", state=Tally)
    builder.add_node("work", handler, **options)
    builder.add_edge(START, "work").add_edge("work", END)
    return builder.compile().with_checkpointer(MemoryCheckpointer())


def test_retry_gets_the_send_argument_as_it_was_sent() -> None:
    """ST-07: a handler that works on its argument in place must not change it."""

    def work(state: Tally, ctx: NodeContext) -> Any:
        ctx.send_arg.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ConnectionError
        return {"note": str(ctx.send_arg)}

    def fan_out(state: Tally) -> Any:
        return Command(goto=[Send("work", [0])])

    builder = GraphBuilder("sample", state=Tally)
    builder.add_command_node("fan_out", fan_out, destinations=["work"])
    builder.add_node("work", work, retry=AGAIN)
    builder.add_edge(START, "fan_out")
    execution = builder.compile().run({})
    assert execution.state.note == "[0, 2]"


def test_retry_gets_the_answer_as_it_was_given() -> None:
    """ST-07."""

    def work(state: Tally, ctx: NodeContext) -> Any:
        if not ctx.has_resume:
            return Interrupt("?")
        ctx.resume.append(ctx.attempt)
        if len(ctx.resume) and ctx.attempt == 1:
            raise ConnectionError
        return {"note": str(ctx.resume)}

    graph = one_node(work, retry=RetryPolicy(initial_interval=0))
    graph.run_with_thread("t", {})
    answer = ["yes"]
    execution = graph.resume("t", Command(resume=answer))
    assert execution.state.note == "['yes', 2]"
    assert answer == ["yes"]


def test_event_that_has_no_json_form_fails_the_node() -> None:
    """ST-05: else it is the journal that cannot be written, and the run hangs."""

    def work(state: Tally, ctx: NodeContext) -> None:
        ctx.emit("progress", object())

    with pytest.raises(NodeFailedError, match=r"progress.*object"):
        one_node(work).run({})


@pytest.mark.parametrize("amount", [float("nan"), "many", None])
def test_usage_that_is_no_number_fails_the_node(amount: Any) -> None:
    """ST-05."""

    def work(state: Tally, ctx: NodeContext) -> None:
        ctx.report_usage(tokens=amount)

    with pytest.raises(NodeFailedError, match="tokens"):
        one_node(work).run({})


@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.timeout(20)
def test_async_handler_that_exits_ends_the_call(timeout: Any) -> None:
    """A SystemExit passes through, and must not leave the caller waiting for it."""

    async def work(state: Tally) -> None:
        sys.exit(3)

    with pytest.raises(SystemExit) as caught:
        one_node(work, timeout=timeout).run({})
    assert caught.value.code == 3


@pytest.mark.parametrize("schema", [object(), {"enum": [object()]}])
def test_question_whose_schema_cannot_be_stored_fails_the_node(schema: Any) -> None:
    """ST-05."""

    def work(state: Tally) -> Any:
        return Interrupt("?", schema=schema)

    with pytest.raises(NodeFailedError, match="answer schema of 'work'"):
        one_node(work).run({})
