"""What a handler is told about where it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stateknot.kernel.records import Namespace
from stateknot.kernel.vocabulary import UNSET
from stateknot.runtime.config import RecursionFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Which branch of a concurrent step this is; `index` is its place in the list."""

    index: int
    node: str


@dataclass(slots=True, kw_only=True)
class NodeContext:
    """Handed to a handler as its second argument.

    `step` is the superstep, `attempt` counts from 1. `resume` is the newest answer to a
    question of this activation (`has_resume` tells it from none), `answers` all of them
    by key. `send_arg` is the argument of the Send that scheduled it, or None.
    `idempotency_key` stays the same over retries and differs in a fork.
    """

    node_id: str
    graph: str
    run_id: str
    thread_id: str | None
    step: int
    attempt: int
    activation_id: str
    root_run_id: str
    idempotency_key: str
    namespace: Namespace = ()
    source: Any = None
    has_resume: bool = False
    resume: Any = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    fork: Fork | None = None
    send_arg: Any = None
    recursion_frames: tuple[RecursionFrame, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    _emit: Callable[[str, Any], None] = lambda _name, _data: None
    _is_cancelled: Callable[[], bool] = lambda: False
    _heartbeat: Callable[[], None] = lambda: None

    def is_cancelled(self) -> bool:
        """Whether the run was cancelled or lost: stop soon, nothing will be kept."""
        return self._is_cancelled()

    def heartbeat(self) -> None:
        """Say that the handler is alive; raises LeaseError when the run was lost."""
        self._heartbeat()

    def emit(self, name: str, data: Any = None) -> None:
        """Tell an event of your own; it reaches live sinks and the journal."""
        self._emit(name, data)

    def report_usage(self, **amounts: Any) -> None:
        """Add to what this attempt used (tokens, calls, money), stored with it.

        Raises TypeError for an amount that is no finite number.
        """
        for name, amount in amounts.items():
            if not isinstance(amount, (int, float)) or not math.isfinite(amount):
                raise TypeError(f"usage {name}={amount!r} is no finite number")
            self.usage[name] = self.usage.get(name, 0) + amount


def deliver_answers(
    context: NodeContext, answers: list[tuple[str | None, Any]]
) -> None:
    """Put answers into a context: the newest as `resume`, those with keys by key."""
    if not answers:
        return
    context.has_resume = True
    context.resume = answers[-1][1]
    context.answers = {key: value for key, value in answers if key is not None}


__all__ = ["UNSET", "Fork", "NodeContext", "deliver_answers"]
