"""A node's failure as a value: what is stored, shown and finally raised.

Above the node runner a failure is never an exception. `NodeFailure.error()` makes the
one that the caller's process gets.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    InvalidTargetError,
    JoinUnsatisfiedError,
    MissingRouteError,
    NodeFailedError,
    ReducerError,
    RoutingError,
    StateKnotError,
    SuccessorParallelismExceededError,
    UndeclaredRouteError,
    UnknownTargetError,
)
from stateknot.kernel.limits import MAXIMUM_CODE, MAXIMUM_ERROR_TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.vocabulary import JsonValue

_KINDS: dict[str, type[NodeFailedError]] = {
    "node": NodeFailedError,
    "reducer": ReducerError,
    "routing": RoutingError,
    "missing_route": MissingRouteError,
    "undeclared_route": UndeclaredRouteError,
    "parallelism": SuccessorParallelismExceededError,
    "unknown_target": UnknownTargetError,
    "invalid_target": InvalidTargetError,
    "join": JoinUnsatisfiedError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """Why an activation cannot go on. `kind` says what failed: its node, its reducer or
    its routing; `cause` is the live exception, which is never stored."""

    node_id: str
    activation_id: str
    kind: str
    code: str
    error_type: str
    message: str
    traceback: str = ""
    attempts: int = 1
    cause: BaseException | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        error: BaseException,
        *,
        node_id: str,
        activation_id: str,
        kind: str = "node",
        attempts: int = 1,
        code: str | None = None,
        place: str = "",
    ) -> NodeFailure:
        """Describe `error`, whatever its `__str__` does.

        `place` names the code that raised it, where that is not the node's handler.
        """
        text = f"in {place}: {_text(error)}" if place else _text(error)
        return cls(
            node_id=node_id,
            activation_id=activation_id,
            kind=kind,
            code=code or _code(error, kind),
            error_type=_storable(type(error).__qualname__)[:MAXIMUM_CODE],
            message=_clean(text, MAXIMUM_ERROR_TEXT),
            traceback=_clean(_trace(error), 4 * MAXIMUM_ERROR_TEXT),
            attempts=attempts,
            cause=error,
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The stored form, without the live exception."""
        return {
            "node": self.node_id,
            "activation": self.activation_id,
            "kind": self.kind,
            "code": self.code,
            "type": self.error_type,
            "message": self.message,
            "traceback": self.traceback,
            "attempts": self.attempts,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> NodeFailure:
        """Read what `to_json` wrote."""
        return cls(
            node_id=data.get("node", ""),
            activation_id=data.get("activation", ""),
            kind=data.get("kind", "node"),
            code=data.get("code", ""),
            error_type=data.get("type", ""),
            message=data.get("message", ""),
            traceback=data.get("traceback", ""),
            attempts=data.get("attempts", 1),
        )

    def error(self, **facts: Any) -> NodeFailedError:
        """The exception for the caller; `facts` are run_id, thread_id and so on."""
        kind = _KINDS.get(self.kind, NodeFailedError)
        what = "failed" if self.kind == "node" else f"failed ({self.kind})"
        if self.kind == "join":
            text = self.message
        else:
            text = (
                f"node {self.node_id!r} {what} after {self.attempts} "
                f"attempt{'s' * (self.attempts != 1)}: "
                f"{self.error_type}: {self.message}"
            )
        raised = kind(
            text,
            node_id=self.node_id,
            code=self.code,
            error_type=self.error_type,
            attempts=self.attempts,
            **facts,
        )
        raised.__cause__ = self.cause
        return raised


def _code(error: BaseException, kind: str) -> str:
    """The code of an error of this package; codes of others mean other things."""
    if isinstance(error, StateKnotError) and error.code != StateKnotError.code:
        return _storable(str(error.code))[:MAXIMUM_CODE]
    return _KINDS.get(kind, NodeFailedError).code


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - a __str__ may raise anything
        return f"(its text could not be made: {type(broken).__name__})"


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception as broken:  # noqa: BLE001 - formats causes, whose __str__ may raise
        return f"(its traceback could not be made: {type(broken).__name__})"


def _clean(text: str, maximum: int) -> str:
    """Text that every database stores, of bounded length: its beginning and its end."""
    safe = _storable(text)
    if len(safe) <= maximum:
        return safe
    return f"{safe[: maximum - 200]}\n... ({len(safe):,} characters)\n{safe[-160:]}"


def _storable(text: str) -> str:
    """Text without NUL and lone surrogates, which are spelt out."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
