"""Folding updates into a state, and saying what that changed.

`StateFold` is made once per compiled graph from its state model, update model and
reducers. Its `fold` takes the state and the updates in active order and gives the new
state together with a `StateDelta`: per field either the new value or the items added to
the end. Read `superstep.py` for who decides which updates are folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import (
    InvalidConcurrentUpdateError,
    SerializationError,
    StateError,
)
from stateknot.kernel.commands import Overwrite
from stateknot.kernel.reducers import Reducer, find_reducer, last_value
from stateknot.kernel.state import StateCodec, copy_model, copy_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.kernel.vocabulary import JsonValue

Updates = Sequence[tuple[str, Any]]
"""Pairs of node id and update, in active order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDelta:
    """What a fold changed: whole new values, and items added to the end of lists."""

    changes: Mapping[str, JsonValue] = field(default_factory=dict)
    appends: Mapping[str, list[JsonValue]] = field(default_factory=dict)

    def apply(self, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """`values` with this delta applied; neither is modified."""
        grown = {
            name: [*values.get(name, ()), *items]
            for name, items in self.appends.items()
        }
        return {**values, **self.changes, **grown}

    def then(self, later: StateDelta) -> StateDelta:
        """This delta and `later` as one, for boundaries that are not written."""
        changes = {**self.changes, **later.changes}
        appends = {k: v for k, v in self.appends.items() if k not in later.changes}
        for name, items in later.appends.items():
            if name in changes:
                changes[name] = [*changes[name], *items]
            else:
                appends[name] = [*appends.get(name, ()), *items]
        return StateDelta(changes=changes, appends=appends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A new state and what differs from the one before."""

    state: BaseModel
    delta: StateDelta


class FoldError(Exception):
    """Carries which update could not be folded; never leaves the kernel.

    `index` is a position in the updates, `is_reducer` whether a reducer's own code
    raised (rather than the value being refused).
    """

    def __init__(self, index: int, cause: Exception, *, is_reducer: bool) -> None:
        super().__init__(str(cause))
        self.index, self.cause, self.is_reducer = index, cause, is_reducer


class StateFold:
    """Folds updates into states of one model."""

    def __init__(
        self,
        model: type[BaseModel],
        *,
        update_model: type[BaseModel] | None = None,
        reducer: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self.codec = StateCodec(model)
        self.update_codec = StateCodec(update_model) if update_model else None
        self.reducer = reducer
        self.reducers: dict[str, Reducer] = {}
        for name, info in model.model_fields.items():
            found = find_reducer(name, info)
            if found is not None:
                self.reducers[name] = found
        self._admits_extra = model.model_config.get("extra") == "allow"

    def initial(self, value: Any) -> Folded:
        """The state a run starts from; its delta holds every field.

        Raises StateError when `value` does not fit the model.
        """
        state = self.codec.validate(value)
        values = self.codec.store(state, self.codec.names)
        restored = self.codec.restore(state, values)
        return Folded(
            state=state.model_copy(update=restored), delta=StateDelta(changes=values)
        )

    def copy(self, state: BaseModel) -> BaseModel:
        """A handler's own copy of the state."""
        return copy_model(state)

    def check_update(self, node_id: str, update: Any) -> dict[str, Any]:
        """The fields an update sets. Raises StateError for a key that is no field."""
        if update is None:
            return {}
        if isinstance(update, BaseModel):
            return {name: getattr(update, name) for name in update.model_fields_set}
        if not isinstance(update, Mapping):
            raise StateError(
                f"node {node_id!r} returned a {type(update).__name__}; return None, a "
                "mapping of state fields, a model, a Command, an Interrupt or a Timer"
            )
        self._check_keys(node_id, update)
        if self.update_codec is not None:
            fields = self.update_codec.validate(dict(update))
            return {name: getattr(fields, name) for name in fields.model_fields_set}
        return dict(update)

    def _check_keys(self, node_id: str, update: Mapping[Any, Any]) -> None:
        known = (self.update_codec or self.codec).model.model_fields
        unknown = sorted(str(key) for key in update if key not in known)
        if unknown and not self._admits_extra:
            raise StateError(
                f"node {node_id!r} returned unknown field{'s' * (len(unknown) > 1)} "
                f"{', '.join(map(repr, unknown))}; the state has {', '.join(known)}",
                path=unknown[0],
            )

    def fold(self, state: BaseModel, updates: Updates) -> Folded:
        """Fold `updates` in order.

        Raises FoldError with the index of the update that could not be folded.
        """
        updates = [(node, update) for node, update in updates if update is not None]
        if not updates:
            return Folded(state=state, delta=StateDelta())
        try:
            return self._fold(state, updates)
        except StateError as error:
            raise self._attribute(state, updates, error) from error

    def _attribute(
        self, state: BaseModel, updates: Updates, error: StateError
    ) -> FoldError:
        """Find the first update with which the state stops fitting its model."""
        for count in range(1, len(updates)):
            try:
                self._fold(state, updates[:count])
            except StateError as earlier:
                return FoldError(count - 1, earlier, is_reducer=False)
        return FoldError(len(updates) - 1, error, is_reducer=False)

    def _fold(self, state: BaseModel, updates: Updates) -> Folded:
        if self.reducer is not None:
            return self._settle(
                state, *self._reduce_whole(self.reducer, state, updates)
            )
        values = dict(state.__dict__)
        starts: dict[str, int | None] = {}
        writers: dict[str, tuple[int, str]] = {}
        for index, (node, update) in enumerate(updates):
            try:
                fields = self.check_update(node, update)
            except StateError as error:
                raise FoldError(index, error, is_reducer=False) from error
            for name, value in fields.items():
                self._check_writers(name, value, index, node, writers)
                own = _own_copy(name, value, index)
                try:
                    self._write(name, own, values, starts)
                except Exception as error:
                    raise FoldError(index, error, is_reducer=True) from error
        return self._settle(state, values, starts)

    def _reduce_whole(
        self, reducer: Callable[[Any, Any], Any], state: BaseModel, updates: Updates
    ) -> tuple[dict[str, Any], dict[str, int | None]]:
        pairs = [
            (node, _own_copy(f"the update of {node!r}", update, index))
            for index, (node, update) in enumerate(updates)
        ]
        try:
            result = reducer(copy_model(state), pairs)
        except Exception as error:
            raise FoldError(len(updates) - 1, error, is_reducer=True) from error
        fields = result.__dict__ if isinstance(result, BaseModel) else result
        if not isinstance(fields, Mapping):
            refused = StateError(f"the reducer returned a {type(result).__name__}")
            raise FoldError(len(updates) - 1, refused, is_reducer=True)
        old = state.__dict__
        changed = {k: v for k, v in fields.items() if k not in old or old[k] != v}
        starts = {
            name: len(old[name])
            if isinstance(value, list) and isinstance(old.get(name), list)
            else None
            for name, value in changed.items()
        }
        return {**old, **changed}, starts

    def _check_writers(
        self,
        name: str,
        value: Any,
        index: int,
        node: str,
        writers: dict[str, tuple[int, str]],
    ) -> None:
        if not isinstance(value, Overwrite) and self.reducers.get(name) != last_value:
            return
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

    def _write(
        self,
        name: str,
        value: Any,
        values: dict[str, Any],
        starts: dict[str, int | None],
    ) -> None:
        reducer = self.reducers.get(name)
        old = values.get(name)
        if isinstance(value, Overwrite):
            values[name], starts[name] = value.value, None
        elif reducer is None:
            values[name], starts[name] = value, None
        else:
            values[name] = reducer(old, value)
            grows = reducer.accumulates and isinstance(old, list)
            starts.setdefault(name, len(old) if grows and old is not None else None)

    def _settle(
        self, state: BaseModel, values: dict[str, Any], starts: dict[str, int | None]
    ) -> Folded:
        """Validate, store and restore what changed, and nothing else.

        Unchanged fields keep their value even where a validator would change it again.
        """
        valid = self.codec.validate(values)
        kept: dict[str, Any] = {}
        appends: dict[str, list[JsonValue]] = {}
        for name, start in starts.items():
            old = getattr(state, name, None)
            new = getattr(valid, name)
            if start and isinstance(new, list) and new[:start] == old:
                items, restored = self._added(valid, name, start)
                if items:
                    appends[name] = items
                    kept[name] = [*(old or ()), *restored]
        changed = [
            name for name in starts if name not in kept and _differs(state, valid, name)
        ]
        changes = self.codec.store(valid, changed)
        kept.update(self.codec.restore(valid, changes))
        return Folded(
            state=state.model_copy(update=kept),
            delta=StateDelta(changes=changes, appends=appends),
        )

    def _added(
        self, valid: BaseModel, name: str, start: int
    ) -> tuple[list[JsonValue], list[Any]]:
        """The stored and the restored form of the items behind `start`.

        Only they are encoded, unless the model has validators or bounds of its own that
        a part of the list cannot meet.
        """
        part = valid.model_copy(update={name: getattr(valid, name)[start:]})
        if self.codec.is_plain:
            stored = self.codec.store(part, [name])
            try:
                return stored[name], self.codec.restore(part, stored)[name]
            except SerializationError:
                pass
        stored = self.codec.store(valid, [name])
        restored = self.codec.restore(valid, stored)
        return stored[name][start:], restored[name][start:]


def _own_copy(path: str, value: Any, index: int) -> Any:
    """A copy of what a node returned. Raises FoldError for what cannot be copied.

    Such a value (a lock, a connection) could not be stored either.
    """
    try:
        return copy_value(value)
    except Exception as error:
        refused = SerializationError(f"{path}: {error}", path=path)
        raise FoldError(index, refused, is_reducer=False) from error


def _differs(state: BaseModel, valid: BaseModel, name: str) -> bool:
    return bool(getattr(state, name, None) != getattr(valid, name))
