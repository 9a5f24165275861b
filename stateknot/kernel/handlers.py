"""How a handler wants to be called: what it takes, and whether it is awaited."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from stateknot.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTEXT_NAMES = frozenset({"ctx", "_ctx", "context", "_context"})


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives something to await."""
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with async call
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def takes_context(node_id: str, function: Callable[..., Any]) -> bool:
    """Whether the handler takes (state, ctx) rather than (state).

    A second parameter with a default is the context only by its name: `lambda state,
    n=n: ...` binds a loop's variable and wants nothing else there. Raises
    ValidationError for a handler that takes neither.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    parameters = signature.parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    required = [p for p in positional if p.default is p.empty]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    if not positional or len(required) > 2 or any(p.default is p.empty for p in named):
        raise ValidationError(
            f"the handler of node {node_id!r} must take (state) or (state, ctx), not "
            f"{signature}"
        )
    second = positional[1:2]
    return bool(second) and (second[0] in required or second[0].name in _CONTEXT_NAMES)
