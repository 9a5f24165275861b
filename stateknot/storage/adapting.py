"""Values of columns in the form that a database's driver takes.

Django's fields know that form, but asking one is a chain of calls for each value of
each boundary. What a column needs is found out once here, and most need nothing; kinds
that are not listed still ask their field. Read `boundary_sql.py` for who uses it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, Model

    Adapter = Callable[[Any, BaseDatabaseWrapper], Any]

_INTEGERS = frozenset({"BigIntegerField", "IntegerField"})
_PLAIN = frozenset({"CharField", "BinaryField", "BooleanField", "FloatField"})
_PLAIN_ON = {
    "postgresql": _PLAIN | {"UUIDField", "DateTimeField"},
    "sqlite": _PLAIN | _INTEGERS,
}


def adapt(
    model: type[Model],
    names: Iterable[str],
    values: Mapping[str, Any],
    connection: BaseDatabaseWrapper,
) -> list[Any]:
    """The values of the columns `names` (attribute names), in that order."""
    adapters = _adapters(model, connection.alias)
    adapted = []
    for name in names:
        value, adapter = values[name], adapters[name]
        if adapter is not None and value is not None:
            value = adapter(value, connection)
        adapted.append(value)
    return adapted


@lru_cache
def _adapters(model: type[Model], alias: str) -> dict[str, Adapter | None]:
    connection = connections[alias]
    return {
        field.attname: _adapter(field, connection)
        for field in model._meta.concrete_fields
    }


def _adapter(field: Field[Any, Any], connection: BaseDatabaseWrapper) -> Adapter | None:
    target = field.target_field if field.is_relation else field  # type: ignore[attr-defined]
    kind = target.get_internal_type()
    if kind in _PLAIN_ON.get(connection.vendor, ()):
        return None
    if kind in _INTEGERS:
        # A class that tells the driver the column's width.
        wrapper = type(connection.ops.adapt_integerfield_value(0, kind))
        return lambda value, _connection: wrapper(value)
    if kind == "UUIDField" and connection.vendor == "sqlite":
        return lambda value, _connection: value.hex
    return field.get_db_prep_save
