"""A state with every type that decision 12 names, and a graph that returns it.

A second process imports this module to load what a first one stored.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from stateknot import START, GraphBuilder


class Mood(StrEnum):
    GOOD = "good"


class Level(IntEnum):
    LOW = 1


class Colour(Enum):
    RED = "#f00"


class Line(BaseModel):
    """A nested value, itself nested."""

    price: Decimal
    sizes: tuple[int, ...] = ()
    moods: dict[str, Mood] = {}
    inner: Line | None = None


class Typed(BaseModel):
    """One field for each type."""

    at: datetime | None = None
    day: date | None = None
    span: timedelta | None = None
    price: Decimal | None = None
    id: UUID | None = None
    mood: Mood | None = None
    level: Level | None = None
    colour: Colour | None = None
    tags: set[str] = set()
    codes: frozenset[int] = frozenset()
    pair: tuple[str, int] | None = None
    raw: bytes | None = None
    line: Line | None = None
    lines: list[Line] = []
    open: Any = None


VALUES: dict[str, Any] = {
    "at": datetime(2026, 3, 29, 1, 59, 59, 123456, timezone(timedelta(hours=5.5))),
    "day": date(2024, 2, 29),
    "span": timedelta(days=-1, microseconds=1),
    "price": Decimal("1.10"),
    "id": UUID(int=2**127 + 7),
    "mood": Mood.GOOD,
    "level": Level.LOW,
    "colour": Colour.RED,
    "tags": {"b", "ä", "a", ""},
    "codes": frozenset({3, 1, 2}),
    "pair": ("x", 1),
    "raw": b"bytes",
    "line": Line(price=Decimal("0.10"), inner=Line(price=Decimal("1E+3"))),
    "lines": [Line(price=Decimal(1), sizes=(1, 2), moods={"a": Mood.GOOD})],
    "open": {"big": 2**53 - 1, "deep": [[1], {"x": "y"}], "f": 0.1, "n": None},
}


def typed_graph(checkpointer: Any) -> Any:
    """Node `give` returns `VALUES`; node `keep` hands nothing on."""
    builder = GraphBuilder("tests.typed", state=Typed)
    builder.add_node("give", lambda _state: VALUES).add_node(
        "keep", lambda _state: None
    )
    graph = builder.add_edge(START, "give").add_edge("give", "keep").compile()
    return graph.with_checkpointer(checkpointer)


def differences(state: Any) -> list[str]:
    """What of `VALUES` came back as another value or type."""
    return [
        f"{name}: {getattr(state, name)!r} is not {expected!r}"
        for name, expected in VALUES.items()
        if repr_of(getattr(state, name)) != repr_of(expected)
    ]


def repr_of(value: Any) -> str:
    """A text that shows types, in which sets are in order."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(value)!r}"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC)!r}{value.utcoffset()!r}"
    return repr(value)
