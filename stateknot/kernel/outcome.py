"""How what a handler returned is understood.

`read_result` turns a returned value into an `Outcome`: completed, asked, or (from the
node runner) failed. Pending results are outcomes that wait for their fold; their stored
form is `result_codec.py`'s. Read `superstep.py` for what is decided from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Command, Interrupt, Send, Timer
from stateknot.kernel.limits import (
    MAXIMUM_QUESTION_KEY,
    MAXIMUM_QUESTIONS,
    MAXIMUM_VALUE_BYTES,
)
from stateknot.kernel.profile import check_profile, check_size, encode
from stateknot.kernel.vocabulary import UNSET, JsonValue, Unset

if TYPE_CHECKING:
    from stateknot.kernel.failure import NodeFailure

Target: TypeAlias = str | Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A handler's finished work. `goto` is None where the node's own edges decide."""

    update: Any = None
    goto: tuple[Target, ...] | None = None
    route: str | None = None
    output: JsonValue | Unset = UNSET
    timer: Timer | None = None
    asks: tuple[Interrupt, ...] = ()
    attempt_id: str | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the node is done but its successors wait for a person or a time."""
        return self.timer is not None or bool(self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A handler's questions; `is_open` where an earlier boundary recorded them."""

    interrupts: tuple[Interrupt, ...]
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that is not tried again."""

    failure: NodeFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """A failed attempt whose next try is too far away for a process to sleep."""

    delay_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """An activation that a sequential step did not get to."""


Outcome: TypeAlias = Completed | Asked | Failed | Deferred | NotRun


def to_json_value(value: Any, path: str) -> JsonValue:
    """`value` as JSON that shares nothing with it, checked for profile and size.

    Raises SerializationError when it has no JSON form.
    """
    try:
        plain = to_jsonable_python(value)
    except Exception as error:
        raise SerializationError(f"{path}: {error}", path=path) from error
    check_profile(plain, path)
    check_size(encode(plain), path, MAXIMUM_VALUE_BYTES)
    return plain


def read_result(node_id: str, result: Any) -> Completed | Asked:
    """Understand what `node_id`'s handler returned.

    Raises StateError for a value that is none of the admitted kinds.
    """
    if isinstance(result, Interrupt):
        return Asked(interrupts=(_question(node_id, result),))
    if isinstance(result, Timer):
        _check_timer(node_id, result)
        return Completed(goto=_read_goto(node_id, result.goto), timer=result)
    if isinstance(result, Command):
        return _read_command(node_id, result)
    if isinstance(result, (list, tuple)):
        return Asked(interrupts=_questions(node_id, result))
    if result is None or isinstance(result, (Mapping, BaseModel)):
        return Completed(update=result)
    raise StateError(
        f"node {node_id!r} returned a {type(result).__name__}; return None, a mapping "
        "of state fields, a model, a Command, an Interrupt or a Timer"
    )


def _check_timer(node_id: str, timer: Timer) -> None:
    until: Any = timer.until
    if isinstance(until, timedelta):
        return
    if not isinstance(until, datetime) or until.utcoffset() is None:
        raise StateError(
            f"node {node_id!r} set a timer until {until!r}; give a timedelta, or a "
            "datetime with a time zone"
        )


def _read_command(node_id: str, command: Command) -> Completed:
    output = command.output
    if output is not UNSET:
        output = to_json_value(output, "output")
    return Completed(
        update=command.update,
        goto=_read_goto(node_id, command.goto),
        route=None if command.route is None else label_text(command.route),
        output=output,
    )


def label_text(label: Any) -> str:
    """The text of a route label: an enum member's value, else its string form."""
    value = getattr(label, "value", label)
    return value if isinstance(value, str) else str(value)


def _read_goto(node_id: str, goto: Any) -> tuple[Target, ...] | None:
    if goto is None:
        return None
    targets = [goto] if isinstance(goto, (str, Send)) else goto
    if not isinstance(targets, Sequence):
        raise StateError(f"node {node_id!r}: goto is a {type(goto).__name__}")
    return tuple(_read_target(node_id, target) for target in targets)


def _read_target(node_id: str, target: Any) -> Target:
    if isinstance(target, Send):
        arg = to_json_value(target.arg, f"the argument of Send({target.node!r})")
        return Send(label_text(target.node), arg)
    text = label_text(target)
    if not text:
        raise StateError(f"node {node_id!r}: goto names an empty node id")
    return text


def _questions(node_id: str, items: Sequence[Any]) -> tuple[Interrupt, ...]:
    kinds = {type(item).__name__ for item in items if not isinstance(item, Interrupt)}
    if not items or kinds:
        found = ", ".join(sorted(kinds)) or "nothing"
        raise StateError(
            f"node {node_id!r} returned a list of {found}; a list may hold Interrupts "
            "only. Return a mapping of state fields to change the state"
        )
    if len(items) > MAXIMUM_QUESTIONS:
        raise StateError(
            f"node {node_id!r} asks {len(items):,} questions at once, the limit is "
            f"{MAXIMUM_QUESTIONS}; ask one with a list in it, or fan out"
        )
    keys = [item.key if item.key is None else label_text(item.key) for item in items]
    if len(items) > 1 and (None in keys or len(set(keys)) < len(keys)):
        raise StateError(
            f"node {node_id!r} asks {len(items)} questions; each needs a key of its own"
        )
    return tuple(_question(node_id, item) for item in items)


def _question_text(value: Any, path: str) -> str | None:
    """A key or an id as text. Raises SerializationError if no column takes it."""
    if value is None:
        return None
    text = label_text(value)
    check_profile(text, path)
    if len(text) > MAXIMUM_QUESTION_KEY:
        raise SerializationError(
            f"{path} has {len(text):,} characters, the limit is {MAXIMUM_QUESTION_KEY}",
            path=path,
        )
    return text


def _question(node_id: str, item: Interrupt) -> Interrupt:
    """The question in the form that is stored: JSON values, and a JSON Schema."""
    expires, default = item.expires_in, item.default
    if expires is not None and not isinstance(expires, timedelta):
        raise StateError(
            f"node {node_id!r} asks a question with expires_in={expires!r}; give a "
            "timedelta"
        )
    if expires is not None and default is UNSET:
        raise StateError(
            f"node {node_id!r} asks a question that expires without a default; give "
            "default=, the answer that counts when nobody answers in time"
        )
    if default is not UNSET:
        default = to_json_value(default, f"the default answer of {node_id!r}")
    return replace(
        item,
        payload=to_json_value(item.payload, f"the question of {node_id!r}"),
        schema=_answer_schema(node_id, item.schema),
        key=_question_text(item.key, f"the key of a question of {node_id!r}"),
        id=_question_text(item.id, f"the id of a question of {node_id!r}"),
        default=default,
        node=item.node or node_id,
    )


def _answer_schema(node_id: str, schema: Any) -> dict[str, JsonValue] | None:
    """The JSON Schema of an answer: of a model or a type, or as it was given."""
    where = f"the answer schema of {node_id!r}"
    if schema is not None and not isinstance(schema, Mapping):
        try:
            schema = TypeAdapter(schema).json_schema()
        except Exception as error:
            raise StateError(f"{where}: {error}") from error
    document: dict[str, JsonValue] | None = to_json_value(schema, where)
    return document
