"""Folding updates into a state, and saying what that changed.

`StateFold` is made once per compiled graph from its state model, update model and
reducers. Its `fold` takes the state and the updates in active order and gives the new
state together with a `StateDelta`: per field either the new value or the items added to
the end. Read `superstep.py` for who decides which updates are folded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot.errors import StateError, ValidationError
from stateknot.kernel.commands import Overwrite
from stateknot.kernel.likeness import copy_model, is_alike
from stateknot.kernel.reducers import Reducer, find_reducer, last_value
from stateknot.kernel.reduction import FoldError, Reduced, reduce_fields, reduce_whole
from stateknot.kernel.state import StateCodec
from stateknot.kernel.state_model import check_state_model, marks_of
from stateknot.kernel.updates import UpdateReader
from stateknot.kernel.vocabulary import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stateknot.kernel.reduction import Updates
    from stateknot.kernel.vocabulary import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDelta:
    """What a fold changed: whole new values, and items added to the end of lists.

    `drops` are fields that the state has no longer. Only a move to another revision has
    some, and it is written by itself, so that `then` need not join them.
    """

    changes: Mapping[str, JsonValue] = field(default_factory=dict)
    appends: Mapping[str, list[JsonValue]] = field(default_factory=dict)
    drops: tuple[str, ...] = ()

    def apply(self, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """`values` with this delta applied; neither is modified."""
        grown = {
            name: [*values.get(name, ()), *items]
            for name, items in self.appends.items()
        }
        kept = {name: v for name, v in values.items() if name not in self.drops}
        return {**kept, **self.changes, **grown}

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


class StateFold:
    """Folds updates into states of one model."""

    def __init__(
        self,
        model: type[BaseModel],
        *,
        update_model: type[BaseModel] | None = None,
        reducer: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self.codec = StateCodec(_checked(model))
        self.update_codec = StateCodec(_checked(update_model)) if update_model else None
        self.reducer = reducer
        self.reducers: dict[str, Reducer] = {}
        for name, info in model.model_fields.items():
            found = find_reducer(name, marks_of(info))
            if found is not None:
                self.reducers[name] = found
        self._reader = UpdateReader(self.codec, self.update_codec)
        self.updates_are_fields = reducer is None and update_model is None
        if self.update_codec is not None and reducer is None:
            self._check_update_model(self.update_codec)

    def _check_update_model(self, update_codec: StateCodec) -> None:
        strange = [name for name in update_codec.names if name not in self.codec.names]
        if strange:
            raise ValidationError(
                f"update model {update_codec.model.__name__} has the fields "
                f"{', '.join(strange)}, which the state has not; rename them or give "
                "the graph a reducer for the whole state"
            )

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

    def changes_of(self, before: BaseModel, handed: BaseModel) -> dict[str, Any]:
        """The update of a handler that gave back the state it was handed.

        Fields that it left alone are no update: they would undo what a sibling of its
        superstep wrote. Items added to the end of an accumulating list are added, any
        other change replaces the value.
        """
        changes: dict[str, Any] = {}
        for name in self.codec.names:
            old, new = getattr(before, name), getattr(handed, name)
            if not is_alike(old, new):
                changes[name] = self._change(self.reducers.get(name), old, new)
        return changes

    def _change(self, reducer: Reducer | None, old: Any, new: Any) -> Any:
        if reducer is None or reducer == last_value:
            return new
        grows = isinstance(old, list) and isinstance(new, list)
        if reducer.accumulates and grows and is_alike(old, new[: len(old)]):
            return new[len(old) :]
        return Overwrite(new)

    def check_update(self, node_id: str, update: Any) -> dict[str, Any]:
        """The fields an update sets. Raises StateError for a key that is no field."""
        return self._reader.read(node_id, update)

    def fold(self, state: BaseModel, updates: Updates) -> Folded:
        """Fold `updates` in order.

        Raises FoldError with the index of the update that could not be folded.
        """
        updates = [(node, update) for node, update in updates if update is not None]
        if not updates:
            return Folded(state=state, delta=StateDelta())
        try:
            return self._fold(state, updates)
        except FoldError:
            raise
        except Exception as error:
            raise self._attribute(state, updates, error) from error

    def _attribute(
        self, state: BaseModel, updates: Updates, error: Exception
    ) -> FoldError:
        """Find the first update with which the state stops fitting its model."""
        for count in range(1, len(updates)):
            try:
                self._fold(state, updates[:count])
            except FoldError as earlier:
                return earlier
            except Exception as earlier:  # noqa: BLE001 - author's validators
                return FoldError(count - 1, earlier, is_reducer=False)
        return FoldError(len(updates) - 1, error, is_reducer=False)

    def _fold(self, state: BaseModel, updates: Updates) -> Folded:
        if self.reducer is None:
            reduced = reduce_fields(self._reader, self.reducers, state, updates)
        else:
            reduced = reduce_whole(self._reader, self.reducer, state, updates)
        return self._settle(state, reduced)

    def _settle(self, state: BaseModel, reduced: Reduced) -> Folded:
        """Validate, store and restore what changed, and nothing else.

        A field that nobody wrote changes only where the model's validators say so.
        """
        valid = self.codec.validate(reduced.values)
        kept: dict[str, Any] = {}
        appends: dict[str, list[JsonValue]] = {}
        for name, start in reduced.starts.items():
            old, new = getattr(state, name, UNSET), getattr(valid, name)
            if start and isinstance(new, list) and new[:start] == old:
                items, restored = self._added(valid, name, start)
                if items:
                    appends[name] = items
                    kept[name] = [*old, *restored]
        may_change = reduced.starts if self.codec.is_plain else self.codec.names
        changed = [
            name
            for name in may_change
            if name not in kept
            and not is_alike(getattr(state, name, UNSET), getattr(valid, name))
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
            except StateError:
                pass
        stored = self.codec.store(valid, [name])
        restored = self.codec.restore(valid, stored)
        return stored[name][start:], restored[name][start:]


def _checked(model: type[BaseModel]) -> type[BaseModel]:
    """The model, or its first fault with all of them in `issues`."""
    issues = check_state_model(model)
    if issues:
        issues[0].issues = tuple(issues)
        raise issues[0]
    return model
