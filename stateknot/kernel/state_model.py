"""What a state model must be, so that a state can be stored field by field.

`check_state_model` is asked when a graph is compiled. `marks_of` finds what an author
wrote into a field's `Annotated`: a reducer, or `Secret`. Read `state.py` next for how
states are stored.
"""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, RootModel

from stateknot.errors import GraphError, ValidationError
from stateknot.kernel.commands import Secret
from stateknot.kernel.reducers import Reducer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo


def check_state_model(model: Any) -> list[GraphError]:
    """Every reason why states of `model` could not be stored; empty when they can."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return [ValidationError(f"the state must be a pydantic model, not {model!r}")]
    if issubclass(model, RootModel):
        return [
            ValidationError(
                f"model {model.__name__} is a RootModel and has no fields; put "
                "its value into a field of an ordinary model"
            )
        ]
    return [ValidationError(text) for text in _faults(model)]


def marks_of(info: FieldInfo) -> list[Any]:
    """What is annotated on a field, on the members of its union too.

    `Annotated[list[str], append] | None` means the same as with None inside.
    """
    marks = list(info.metadata)
    if get_origin(info.annotation) in (Union, UnionType):
        for member in get_args(info.annotation):
            if get_origin(member) is Annotated:
                marks.extend(member.__metadata__)
    return marks


def _faults(model: type[BaseModel]) -> Iterator[str]:
    if model.model_config.get("extra") == "allow":
        yield (
            f"model {model.__name__} allows extra fields, which no schema names; "
            "declare a field of type dict for open keys"
        )
    names = set(model.model_fields)
    for name, info in model.model_fields.items():
        if info.exclude or getattr(info, "exclude_if", None):
            yield (
                f"field {name!r} of {model.__name__} is excluded from what is stored; "
                "mark it Secret to hide it, or take it out of the state"
            )
        for alias in sorted(aliases_of(info) & (names - {name})):
            yield (
                f"the alias {alias!r} of field {name!r} of {model.__name__} is the "
                "name of another field; choose another alias"
            )
        if _is_marked_inside(info):
            yield (
                f"field {name!r} of {model.__name__} has a reducer or Secret inside "
                "its type, where it would do nothing; annotate the field itself"
            )


def aliases_of(info: FieldInfo) -> set[str]:
    """The other names under which a field may be given; none is that of a field."""
    found = [info.alias, info.validation_alias]
    if isinstance(info.validation_alias, AliasChoices):
        found.extend(c for c in info.validation_alias.choices if isinstance(c, str))
    return {alias for alias in found if isinstance(alias, str)}


def _is_marked_inside(info: FieldInfo) -> bool:
    """Whether a mark stands deeper in the field's type than `marks_of` looks."""
    members = [info.annotation]
    if get_origin(info.annotation) in (Union, UnionType):
        members = [_bare(member) for member in get_args(info.annotation)]
    return any(_holds_mark(part) for member in members for part in get_args(member))


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _holds_mark(kind: Any) -> bool:
    marks = kind.__metadata__ if get_origin(kind) is Annotated else ()
    if any(isinstance(mark, (Reducer, Secret)) or mark is Secret for mark in marks):
        return True
    return any(_holds_mark(part) for part in get_args(kind))
