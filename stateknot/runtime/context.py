"""What a handler is told about where it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import RunError
from stateknot.kernel.canonical import domain_digest
from stateknot.kernel.outcome import label_text, to_json_value
from stateknot.kernel.records import Namespace
from stateknot.kernel.vocabulary import UNSET
from stateknot.runtime.config import RecursionFrame

if TYPE_CHECKING:
    from stateknot.runtime.events import EventLog


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
    `idempotency_key` stays the same over retries and crashes, and differs in a fork
    and behind an older checkpoint.
    """

    node_id: str
    graph: str
    run_id: str
    thread_id: str | None
    step: int
    attempt: int
    activation_id: str
    root_run_id: str
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
    _lineage: int = 0
    _is_over: bool = field(default=False, init=False)
    _last: float = field(default=math.inf, init=False)
    has_seen_end: bool = field(default=False, init=False)

    @property
    def idempotency_key(self) -> str:
        """A key for calls of other systems that must not happen twice."""
        key = {
            "run": self.run_id,
            "namespace": list(self.namespace),
            "lineage": self._lineage,
            "activation": self.activation_id,
        }
        return domain_digest("stateknot-idempotency-key-v1", key)

    def is_cancelled(self) -> bool:
        """Whether the run was cancelled or lost, or this attempt timed out.

        Stop soon then: nothing will be kept. It asks no database; that somebody
        cancelled the run is known after the next heartbeat at the latest.
        """
        is_late = time.monotonic() > self._last
        is_end = is_late or self._is_over or self._is_cancelled()
        self.has_seen_end = self.has_seen_end or is_end
        return is_end

    def heartbeat(self) -> None:
        """Say that the handler is alive.

        Raises LeaseError for a lost run, RunCancelledError for a cancelled one.
        """
        self._require_going()
        self._heartbeat()

    def emit(self, name: str, data: Any = None) -> None:
        """Tell an event of your own; it reaches live sinks and the journal."""
        self._require_going()
        self._emit(name, data)

    def report_usage(self, **amounts: Any) -> None:
        """Add to what this attempt used (tokens, calls, money), stored with it.

        Raises TypeError for an amount that is no finite number.
        """
        self._require_going()
        for name, amount in amounts.items():
            if not isinstance(amount, (int, float)) or not math.isfinite(amount):
                raise TypeError(f"usage {name}={amount!r} is no finite number")
            self.usage[name] = self.usage.get(name, 0) + amount

    def next_attempt(self) -> NodeContext:
        """What the next attempt of the same activation is told."""
        return replace(self, attempt=self.attempt + 1, usage={})

    def end_at(self, last: float) -> None:
        """Say that the attempt is cancelled once the monotonic clock is past `last`."""
        self._last = last

    def end(self) -> None:
        """Keep an attempt that timed out, but may go on, from telling anything more.

        Its successor has a context of its own.
        """
        self._is_over = True

    def _require_going(self) -> None:
        if self._is_over:
            raise RunError(
                f"attempt {self.attempt} of node {self.node_id!r} timed out; what it "
                "says now is not kept. Ask ctx.is_cancelled() and stop"
            )


def emitter(log: EventLog, context: NodeContext) -> Callable[[str, Any], None]:
    """What tells an event of the handler that was given `context`."""

    def emit(name: str, data: Any) -> None:
        told = to_json_value(data, f"the event {name!r} of {context.node_id!r}")
        log.tell(
            "custom",
            step=context.step,
            node=context.node_id,
            name=label_text(name),
            data=told,
        )

    return emit


def deliver_answers(
    context: NodeContext, answers: list[tuple[str | None, Any]]
) -> None:
    """Put answers into a context: the newest as `resume`, those with keys by key."""
    if not answers:
        return
    context.has_resume = True
    context.resume = answers[-1][1]
    context.answers = {key: value for key, value in answers if key is not None}


__all__ = ["UNSET", "Fork", "NodeContext", "deliver_answers", "emitter"]
