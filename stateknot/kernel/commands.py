"""What a handler may return, and what a caller may hand in.

A handler returns None, a mapping, a model, a `Command`, an `Interrupt` (or a list of
them) or a `Timer`. Callers use `GraphInput` to seed the first superstep, `Command` to
resume and `ResumeTarget` to name a checkpoint. Nothing here decides anything; read
`outcome.py` for how a returned value is understood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.kernel.vocabulary import START, UNSET, JsonValue, Unset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta


class Secret:
    """Marks a state field, `Annotated[str, Secret]`, as masked in every output."""


@dataclass(frozen=True, slots=True)
class Send:
    """One activation of `node` with an argument of its own, read as `ctx.send_arg`."""

    node: str
    arg: JsonValue = None


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces the value of an accumulating field in place of being folded into it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Command:
    """An update together with where to go; or, from a caller, an answer.

    `goto` (a node id, a `Send`, or a list of them, END included) replaces the node's
    edges and routes for this activation. `route` chooses a declared route by label.
    `resume` is always one value, a dict too; several answers go by id in `answers`.
    """

    update: Any = None
    goto: str | Send | Sequence[str | Send] | None = None
    route: str | None = None
    output: Any = UNSET
    resume: Any = UNSET
    answers: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question to a person: the run pauses here until it is answered.

    `payload` is shown to whoever answers; `schema` (a pydantic model or a type) refuses
    answers that do not fit; `key` tells several questions of one node apart; `default`
    is the answer once `expires_in` has passed.
    """

    payload: JsonValue = None
    schema: Any = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    id: str | None = field(default=None, kw_only=True)
    expires_in: timedelta | None = field(default=None, kw_only=True)
    default: Any = field(default=UNSET, kw_only=True)
    node: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Timer:
    """A time to wait for; the node is done and the run goes on at its successors.

    `until` is an aware datetime or a timedelta from now.
    """

    until: datetime | timedelta
    goto: str | Send | Sequence[str | Send] | None = None


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An activation of the first superstep: a node, with a payload or without."""

    target: str
    payload: JsonValue | Unset = UNSET

    @classmethod
    def start(cls, payload: JsonValue = UNSET) -> GraphInput:
        """Enter where START leads, with `payload` as the Send argument."""
        return cls(START, payload)

    @classmethod
    def new(cls, node: str, payload: JsonValue) -> GraphInput:
        """Enter at `node` with `payload` as its Send argument."""
        return cls(node, payload)

    @classmethod
    def node(cls, node: str) -> GraphInput:
        """Enter at `node` without an argument."""
        return cls(node)


@dataclass(frozen=True, slots=True)
class ResumeTarget:
    """The checkpoint to resume from: the newest (None), or the one named."""

    checkpoint_id: str | None = None

    @classmethod
    def latest(cls) -> ResumeTarget:
        """Resume from the newest checkpoint of the thread."""
        return cls()

    @classmethod
    def checkpoint(cls, checkpoint_id: str) -> ResumeTarget:
        """Resume from `checkpoint_id`; an older one begins a new branch."""
        return cls(checkpoint_id)
