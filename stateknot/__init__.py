"""Durable graphs for Django: plain Python functions over a pydantic state.

This module offers the public names. They are loaded when first used, and none of them
loads Django: only `stateknot.storage`, `services` and `selectors` need a project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stateknot.errors import RetryableError as RetryableError
    from stateknot.kernel.commands import (
        Command as Command,
    )
    from stateknot.kernel.commands import (
        GraphInput as GraphInput,
    )
    from stateknot.kernel.commands import (
        Interrupt as Interrupt,
    )
    from stateknot.kernel.commands import (
        Overwrite as Overwrite,
    )
    from stateknot.kernel.commands import (
        ResumeTarget as ResumeTarget,
    )
    from stateknot.kernel.commands import (
        Secret as Secret,
    )
    from stateknot.kernel.commands import (
        Send as Send,
    )
    from stateknot.kernel.commands import (
        Timer as Timer,
    )
    from stateknot.kernel.reducers import (
        add as add,
    )
    from stateknot.kernel.reducers import (
        append as append,
    )
    from stateknot.kernel.reducers import (
        last_value as last_value,
    )
    from stateknot.kernel.reducers import (
        maximum as maximum,
    )
    from stateknot.kernel.reducers import (
        minimum as minimum,
    )
    from stateknot.kernel.reducers import (
        union as union,
    )
    from stateknot.kernel.retry import RetryPolicy as RetryPolicy
    from stateknot.kernel.vocabulary import END as END
    from stateknot.kernel.vocabulary import START as START
    from stateknot.kernel.vocabulary import DurabilityMode as DurabilityMode
    from stateknot.kernel.vocabulary import RunStatus as RunStatus
    from stateknot.runtime.config import RecursionPolicy as RecursionPolicy
    from stateknot.runtime.context import NodeContext as NodeContext
    from stateknot.runtime.execution import GraphExecution as GraphExecution
    from stateknot.runtime.execution import StateSnapshot as StateSnapshot
    from stateknot.runtime.graph import CompiledGraph as CompiledGraph
    from stateknot.runtime.graph import GraphBuilder as GraphBuilder
    from stateknot.runtime.memory import MemoryCheckpointer as MemoryCheckpointer

_WHERE = {
    "stateknot.errors": ("RetryableError", "NodeError", "StateKnotError"),
    "stateknot.kernel.commands": (
        "Command",
        "GraphInput",
        "Interrupt",
        "Overwrite",
        "ResumeTarget",
        "Secret",
        "Send",
        "Timer",
    ),
    "stateknot.kernel.reducers": (
        "add",
        "append",
        "last_value",
        "maximum",
        "minimum",
        "union",
    ),
    "stateknot.kernel.retry": ("RetryPolicy",),
    "stateknot.kernel.vocabulary": ("END", "START", "DurabilityMode", "RunStatus"),
    "stateknot.runtime.config": ("RecursionPolicy",),
    "stateknot.runtime.context": ("NodeContext",),
    "stateknot.runtime.execution": ("GraphExecution", "StateSnapshot"),
    "stateknot.runtime.graph": ("CompiledGraph", "GraphBuilder"),
    "stateknot.runtime.memory": ("MemoryCheckpointer",),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
