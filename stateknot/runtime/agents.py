"""Agents as nodes: `subagent` runs one as a child run of its node.

An agent is any object with a `run` method, sync or async, registered by name. It is run
as a graph of one node, so its questions, failures, retries and time limit are those of
any child graph, and what it used is stored with its attempt. Read `children.py` for how
a child run goes on.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import CapabilityError, LimitExceededError
from stateknot.kernel.builder import duration_seconds
from stateknot.kernel.commands import Interrupt
from stateknot.kernel.vocabulary import START
from stateknot.runtime.graph import GraphBuilder
from stateknot.runtime.subgraphs import required_children

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from stateknot.kernel.retry import RetryPolicy
    from stateknot.runtime.context import NodeContext
    from stateknot.runtime.graph import CompiledGraph

_lock = threading.Lock()
_agents: dict[str, Any] = {}


class AgentState(BaseModel):
    """What an agent's run keeps: what it was given and what it gave."""

    given: Any = None
    answer: Any = None
    usage: dict[str, float] = {}


def register_agent(name: str, agent: Any) -> Any:
    """Make `agent` (an object with `run(given)` or `run(given, ctx)`) known by name."""
    if not callable(getattr(agent, "run", None)):
        raise TypeError(f"agent {name!r} has no run method: {agent!r}")
    with _lock:
        _agents[name] = agent
    return agent


def find_agent(name: str) -> Any:
    """The agent of that name. Raises CapabilityError naming those that there are."""
    agent = _agents.get(name)
    if agent is None:
        known = ", ".join(sorted(_agents)) or "none"
        raise CapabilityError(f"no agent {name!r} is registered; registered: {known}")
    return agent


class SubagentHandler:
    """A handler that runs the agent `name` as a child of its node."""

    kind = "subagent"

    def __init__(
        self,
        name: str,
        to_agent: Callable[[Any], Any] | None,
        from_agent: Callable[[Any, Any], Any],
        options: Mapping[str, Any],
    ) -> None:
        self.name, self.to_agent, self.from_agent = name, to_agent, from_agent
        self.options = dict(options)
        self.__name__ = name

    def __call__(self, state: Any, ctx: NodeContext) -> Any:
        """Run the agent to its end and give its answer as an update."""
        given = self.to_agent(state) if self.to_agent is not None else state
        if isinstance(given, BaseModel):
            given = given.model_dump(mode="json")
        children = required_children()
        graph = agent_graph(self.name, **self.options)
        execution = children.call(
            graph, AgentState(given=given), segment=children.segment()
        )
        usage = execution.state.usage
        ctx.report_usage(**usage)
        children.told.note_usage(execution.run_id, usage)
        _check_budget(self.name, usage, self.options.get("budget"))
        return self.from_agent(state, execution.state.answer)


def agent_graph(
    name: str,
    *,
    retry: RetryPolicy | None = None,
    timeout: float | timedelta | None = None,
    budget: Mapping[str, float] | None = None,
) -> CompiledGraph:
    """The graph of one node that runs the agent `name`."""
    agent = find_agent(name)
    builder = GraphBuilder(f"agent.{name}", state=AgentState, name=f"agent:{name}")
    builder.add_node(
        "run",
        _agent_node(agent),
        retry=retry,
        timeout=duration_seconds(timeout),
        metadata={"budget": dict(budget or {})},
    )
    return builder.add_edge(START, "run").compile()


def _agent_node(agent: Any) -> Callable[[AgentState, NodeContext], Any]:
    takes_context = len(inspect.signature(agent.run).parameters) > 1

    def arguments(state: AgentState, ctx: NodeContext) -> tuple[Any, ...]:
        return (state.given, ctx) if takes_context else (state.given,)

    def run(state: AgentState, ctx: NodeContext) -> Any:
        return _as_result(agent.run(*arguments(state, ctx)), ctx)

    async def arun(state: AgentState, ctx: NodeContext) -> Any:
        return _as_result(await agent.run(*arguments(state, ctx)), ctx)

    return arun if inspect.iscoroutinefunction(agent.run) else run


def _as_result(answer: Any, ctx: NodeContext) -> Any:
    """An interrupt passes as it is; anything else is the agent's answer."""
    if isinstance(answer, Interrupt):
        return answer
    return {"answer": answer, "usage": dict(ctx.usage)}


def _check_budget(
    name: str, usage: Mapping[str, float], budget: Mapping[str, float] | None
) -> None:
    for kind, most in (budget or {}).items():
        used = usage.get(kind, 0)
        if used > most:
            raise LimitExceededError(
                f"agent {name!r} used {used:g} {kind}, its budget is {most:g}"
            )


def subagent(
    name: str,
    *,
    to_agent: Callable[[Any], Any] | None = None,
    from_agent: Callable[[Any, Any], Any],
    retry: RetryPolicy | None = None,
    timeout: float | timedelta | None = None,
    budget: Mapping[str, float] | None = None,
) -> SubagentHandler:
    """A node that runs a registered agent.

    `to_agent(state)` gives what the agent is run with (default: the state as JSON),
    `from_agent(state, answer)` the node's update. `retry` and `timeout` bound its
    attempts; `budget` (amounts by kind of usage) is checked after success.
    """
    options = {"retry": retry, "timeout": timeout, "budget": budget}
    return SubagentHandler(name, to_agent, from_agent, options)
