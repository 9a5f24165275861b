"""How the updates of a superstep become new values of fields, before they are checked.

`reduce_fields` goes update by update through the reducers of the fields, `reduce_whole`
hands all of them to one reducer of the state. Neither validates what comes out; read
`fold.py` for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import (
    InvalidConcurrentUpdateError,
    SerializationError,
    StateError,
)
from stateknot.kernel.commands import Overwrite
from stateknot.kernel.likeness import copy_model, copy_value, is_alike
from stateknot.kernel.reducers import last_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stateknot.kernel.reducers import Reducer
    from stateknot.kernel.updates import UpdateReader

Updates = Sequence[tuple[str, Any]]
"""Pairs of node id and update, in active order."""


class FoldError(Exception):
    """Carries which update could not be folded; never leaves the kernel.

    `index` is a position in the updates, `is_reducer` whether a reducer's own code
    raised (rather than the value being refused), `path` the field, where it is known.
    """

    def __init__(
        self, index: int, cause: Exception, *, is_reducer: bool, path: str = ""
    ) -> None:
        super().__init__(str(cause))
        self.index, self.cause, self.is_reducer = index, cause, is_reducer
        self.path = path


@dataclass(slots=True, kw_only=True)
class Reduced:
    """Values of all fields, and where the written ones begin to differ.

    `starts` gives for each written field the length of the list that was only added to,
    or None where the value is new as a whole.
    """

    values: dict[str, Any]
    starts: dict[str, int | None] = field(default_factory=dict)


def reduce_fields(
    reader: UpdateReader,
    reducers: Mapping[str, Reducer],
    state: BaseModel,
    updates: Updates,
) -> Reduced:
    """Fold each field of each update by the field's reducer, in order.

    Raises FoldError for the first update that cannot be.
    """
    reduced = Reduced(values=dict(state.__dict__))
    writers: dict[str, tuple[int, str]] = {}
    for index, (node, update) in enumerate(updates):
        for name, value in _read(reader, index, node, update).items():
            reducer = reducers.get(name)
            if isinstance(value, Overwrite) or reducer == last_value:
                _claim(name, index, node, writers)
            own = _own_copy(name, value, index)
            try:
                _write(reduced, name, own, reducer)
            except Exception as error:
                raise FoldError(index, error, is_reducer=True, path=name) from error
    return reduced


def reduce_whole(
    reader: UpdateReader,
    reducer: Callable[[Any, Any], Any],
    state: BaseModel,
    updates: Updates,
) -> Reduced:
    """Let one reducer fold all updates, each as its node returned it.

    Raises FoldError naming the last update, since only the author's code could tell.
    """
    pairs = []
    for index, (node, update) in enumerate(updates):
        if reader.update_codec is not None:
            _read(reader, index, node, update)
        pairs.append((node, _own_copy(f"the update of {node!r}", update, index)))
    try:
        fields = reader.read_whole(reducer(copy_model(state), pairs))
    except Exception as error:
        raise FoldError(len(updates) - 1, error, is_reducer=True) from error
    old = state.__dict__
    changed = {k: v for k, v in fields.items() if not is_alike(old[k], v)}
    starts = {name: _length_of(old[name], value) for name, value in changed.items()}
    return Reduced(values={**old, **changed}, starts=starts)


def _read(reader: UpdateReader, index: int, node: str, update: Any) -> dict[str, Any]:
    try:
        return reader.read(node, update)
    except StateError as error:
        raise FoldError(index, error, is_reducer=False) from error


def _length_of(old: Any, new: Any) -> int | None:
    both = isinstance(old, list) and isinstance(new, list)
    return len(old) if both else None


def _claim(
    name: str, index: int, node: str, writers: dict[str, tuple[int, str]]
) -> None:
    """Refuse a second writer of a field that takes one in a superstep."""
    if name not in writers:
        writers[name] = (index, node)
        return
    first, first_node = writers[name]
    error = InvalidConcurrentUpdateError(
        f"field {name!r} was written by {first_node!r} and by {node!r} in one "
        "superstep, and takes one writer; give it a reducer or let one node write",
        path=name,
    )
    # The first writer decides, so that neither value is stored: see decision 13.
    raise FoldError(first, error, is_reducer=True)


def _write(reduced: Reduced, name: str, value: Any, reducer: Reducer | None) -> None:
    values, starts = reduced.values, reduced.starts
    if isinstance(value, Overwrite):
        values[name], starts[name] = value.value, None
    elif reducer is None:
        values[name], starts[name] = value, None
    else:
        old = values[name]
        # A function of the author's may change what it is given.
        values[name] = reducer(old if reducer.is_pure else copy_value(old), value)
        grows = reducer.accumulates and isinstance(old, list)
        starts.setdefault(name, len(old) if grows else None)


def _own_copy(path: str, value: Any, index: int) -> Any:
    """A copy of what a node returned. Raises FoldError for what cannot be copied.

    Such a value (a lock, a connection) could not be stored either.
    """
    try:
        return copy_value(value)
    except Exception as error:
        refused = SerializationError(f"{path}: {error}", path=path)
        raise FoldError(index, refused, is_reducer=False) from error
