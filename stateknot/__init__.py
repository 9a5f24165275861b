"""Durable graphs for Django: plain Python functions over a pydantic state.

This module offers the public names. They are loaded when first used, and none of them
loads Django: only `stateknot.storage`, `services` and `selectors` need a project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stateknot.errors import NodeError, RetryableError, StateKnotError
    from stateknot.kernel.commands import (
        Command,
        GraphInput,
        Interrupt,
        Overwrite,
        ResumeTarget,
        Secret,
        Send,
        Timer,
    )
    from stateknot.kernel.reducers import (
        add,
        append,
        last_value,
        maximum,
        minimum,
        union,
    )
    from stateknot.kernel.retry import RetryPolicy
    from stateknot.kernel.vocabulary import END, START, DurabilityMode, RunStatus
    from stateknot.runtime.agents import subagent
    from stateknot.runtime.config import RecursionPolicy
    from stateknot.runtime.context import NodeContext
    from stateknot.runtime.execution import GraphExecution, StateSnapshot
    from stateknot.runtime.graph import CompiledGraph, GraphBuilder
    from stateknot.runtime.memory import MemoryCheckpointer
    from stateknot.runtime.schedules import CronSchedule
    from stateknot.runtime.subgraphs import adapter_subgraph, shared_subgraph

__all__ = [
    "END",
    "START",
    "Command",
    "CompiledGraph",
    "CronSchedule",
    "DurabilityMode",
    "GraphBuilder",
    "GraphExecution",
    "GraphInput",
    "Interrupt",
    "MemoryCheckpointer",
    "NodeContext",
    "NodeError",
    "Overwrite",
    "RecursionPolicy",
    "ResumeTarget",
    "RetryPolicy",
    "RetryableError",
    "RunStatus",
    "Secret",
    "Send",
    "StateKnotError",
    "StateSnapshot",
    "Timer",
    "adapter_subgraph",
    "add",
    "append",
    "last_value",
    "maximum",
    "minimum",
    "shared_subgraph",
    "subagent",
    "union",
]

_COMMANDS = "Command GraphInput Interrupt Overwrite ResumeTarget Secret Send Timer"
_WHERE = {
    "stateknot.errors": "NodeError RetryableError StateKnotError",
    "stateknot.kernel.commands": _COMMANDS,
    "stateknot.kernel.reducers": "add append last_value maximum minimum union",
    "stateknot.kernel.retry": "RetryPolicy",
    "stateknot.kernel.vocabulary": "END START DurabilityMode RunStatus",
    "stateknot.runtime.agents": "subagent",
    "stateknot.runtime.config": "RecursionPolicy",
    "stateknot.runtime.context": "NodeContext",
    "stateknot.runtime.execution": "GraphExecution StateSnapshot",
    "stateknot.runtime.graph": "CompiledGraph GraphBuilder",
    "stateknot.runtime.memory": "MemoryCheckpointer",
    "stateknot.runtime.schedules": "CronSchedule",
    "stateknot.runtime.subgraphs": "adapter_subgraph shared_subgraph",
}
_MODULE_OF = {
    name: module for module, names in _WHERE.items() for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
