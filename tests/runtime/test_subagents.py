"""Agents as nodes: any registered object that runs, as a child run of its node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stateknot import Command, Interrupt, RetryPolicy, RunStatus, subagent
from stateknot.errors import (
    CapabilityError,
    LimitExceededError,
    NodeFailedError,
    NodeTimeoutError,
)
from stateknot.runtime.agents import register_agent
from tests.runtime.families import parent_of


@pytest.fixture(autouse=True)
def _own_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stateknot.runtime.agents._agents", {})


def answered(state: Any, answer: Any) -> dict[str, Any]:
    return {"log": [f"agent: {answer}"], "total": 1}


def hosting(checkpointer: Any, **options: Any) -> Any:
    options.setdefault("from_agent", answered)
    return parent_of(subagent("helper", **options), checkpointer, node="agent")


class Adder:
    """An agent that reports what it used."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def run(self, given: Any, ctx: Any) -> Any:
        self.given.append(given)
        ctx.report_usage(tokens=7, calls=1)
        return given["total"] + 1


class AsyncAdder:
    async def run(self, given: Any) -> Any:
        await asyncio.sleep(0)
        return given["total"] + 1


@pytest.mark.parametrize("agent", [Adder, AsyncAdder])
def test_answer_of_an_agent_becomes_the_update(checkpointer: Any, agent: Any) -> None:
    """Scenario 150: given the state as JSON, sync and async."""
    register_agent("helper", agent())
    done = hosting(checkpointer).run_with_thread("t", {})
    assert done.state.log == ["before", "agent: 2", "after"]


def test_agent_is_a_child_run_with_its_usage(checkpointer: Any) -> None:
    """Scenario 150."""
    register_agent("helper", Adder())
    graph = hosting(checkpointer)
    done = graph.run_with_thread("t", {})
    (run,) = done.child_runs
    assert (run.graph_id, run.usage) == ("agent.helper", {"tokens": 7, "calls": 1})
    assert run.root_run_id == done.run_id
    (told,) = graph.get_state_history("t")[1].metadata["child_runs"]
    assert told["usage"] == {"tokens": 7, "calls": 1}
    usage = {a.node_id: a.usage for a in checkpointer.list_attempts(done.run_id)}
    assert usage["agent"] == {"tokens": 7, "calls": 1}


def test_agent_gets_what_to_agent_makes(checkpointer: Any) -> None:
    agent = register_agent("helper", Adder())
    graph = hosting(checkpointer, to_agent=lambda state: {"total": state.total * 100})
    assert graph.run_with_thread("t", {}).state.log[1] == "agent: 101"
    assert agent.given == [{"total": 100}]


def test_unknown_agent_fails_the_node(checkpointer: Any) -> None:
    """Scenario 150."""
    with pytest.raises(NodeFailedError, match="registered: none") as failed:
        hosting(checkpointer).run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, CapabilityError)
    assert failed.value.code == "runtime.capability_missing"


def test_agent_without_a_run_method_is_refused() -> None:
    with pytest.raises(TypeError, match="run method"):
        register_agent("helper", object())


def test_budget_is_checked_after_success(checkpointer: Any) -> None:
    """Scenario 150: what it did stands in its child run."""
    agent = register_agent("helper", Adder())
    graph = hosting(checkpointer, budget={"tokens": 5})
    with pytest.raises(NodeFailedError, match="7 tokens, its budget is 5") as failed:
        graph.run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, LimitExceededError)
    (child,) = checkpointer.list_children(failed.value.run_id)
    assert child.status is RunStatus.COMPLETED
    assert len(agent.given) == 1


def test_failing_agent_is_retried_by_its_own_policy(
    checkpointer: Any, clock: Any
) -> None:
    calls: list[Any] = []

    class Shaky:
        def run(self, given: Any) -> str:
            calls.append(given)
            if len(calls) == 1:
                raise ConnectionError("away")
            return "there"

    register_agent("helper", Shaky())
    graph = hosting(checkpointer, retry=RetryPolicy())._with(clock=clock)
    assert graph.run_with_thread("t", {}).state.log[1] == "agent: there"
    assert (len(calls), len(clock.sleeps)) == (2, 1)


def test_without_a_policy_an_agent_is_tried_once(checkpointer: Any) -> None:
    """Section 6: one try, no timeout, no budget."""
    calls: list[Any] = []

    class Broken:
        def run(self, given: Any) -> str:
            calls.append(given)
            raise ConnectionError("away")

    register_agent("helper", Broken())
    graph = hosting(checkpointer)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert len(calls) == 1


def test_agent_that_takes_too_long_is_ended(checkpointer: Any) -> None:
    class Endless:
        async def run(self, given: Any) -> str:
            await asyncio.sleep(60)
            return "late"

    register_agent("helper", Endless())
    with pytest.raises(NodeFailedError) as failed:
        hosting(checkpointer, timeout=0.05).run_with_thread("t", {})
    assert isinstance(failed.value.__cause__.__cause__, NodeTimeoutError)


def test_question_of_an_agent_is_asked_by_the_parent(checkpointer: Any) -> None:
    class Curious:
        def run(self, given: Any, ctx: Any) -> Any:
            return f"told {ctx.resume}" if ctx.has_resume else Interrupt("which?")

    register_agent("helper", Curious())
    graph = hosting(checkpointer)
    assert graph.run_with_thread("t", {}).interrupts[0].payload == "which?"
    assert graph.resume("t", Command(resume="this")).state.log[1] == "agent: told this"


def test_finished_agent_is_not_run_again(checkpointer: Any) -> None:
    """Decision 10: its answer is remembered when what follows it failed."""
    agent = register_agent("helper", Adder())
    failures = [1]

    def from_agent(_state: Any, answer: Any) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise ValueError("mapping")
        return {"log": [str(answer)]}

    graph = hosting(checkpointer, from_agent=from_agent)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["before", "2", "after"]
    assert len(agent.given) == 1
