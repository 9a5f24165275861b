"""State models and values for the tests of folds, codecs and records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import BaseModel, Field

from stateknot.kernel.limits import MAXIMUM_INTEGER
from stateknot.kernel.reducers import (
    add,
    append,
    last_value,
    maximum,
    minimum,
    union,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Line(BaseModel):
    sku: str = ""
    count: int = 0
    tags: set[str] = Field(default_factory=set)


class Rich(BaseModel):
    """A field for each kind of value that storage has to give back alike."""

    when: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    price: Decimal = Decimal("1.10")
    key: UUID = UUID(int=0)
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    tags: frozenset[str] = frozenset()
    pair: tuple[int, str] = (0, "")
    line: Line = Field(default_factory=Line)
    lines: list[Line] = Field(default_factory=list)
    by_number: dict[int, list[Decimal]] = Field(default_factory=dict)
    wait: timedelta = timedelta(0)


class Tally(BaseModel):
    """A field for each reducer, and one without."""

    items: Annotated[list[str], append] = Field(default_factory=list)
    names: Annotated[list[str], union] = Field(default_factory=list)
    labels: Annotated[set[str], union] = Field(default_factory=set)
    total: Annotated[int, add] = 0
    least: Annotated[int | None, minimum] = None
    most: Annotated[int | None, maximum] = None
    owner: Annotated[str, last_value] = ""
    note: str = ""


class Anything(BaseModel):
    value: Any = None


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8
)
integers = st.integers(-MAXIMUM_INTEGER, MAXIMUM_INTEGER)
small = st.integers(-1000, 1000)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)
offsets = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=3)
lines = st.builds(Line, sku=texts, count=integers, tags=st.sets(texts, max_size=3))
rich_states = st.builds(
    Rich,
    when=st.datetimes(timezones=offsets),
    price=decimals,
    key=st.uuids(),
    colour=st.sampled_from(Colour),
    level=st.sampled_from(Level),
    tags=st.frozensets(texts, max_size=3),
    pair=st.tuples(integers, texts),
    line=lines,
    lines=st.lists(lines, max_size=2),
    by_number=st.dictionaries(integers, st.lists(decimals, max_size=2), max_size=2),
    wait=st.timedeltas(timedelta(0), timedelta(days=999)),
)
tally_updates = st.fixed_dictionaries(
    {},
    optional={
        "items": st.lists(texts, max_size=3) | texts,
        "names": st.lists(texts, max_size=3),
        "labels": st.sets(texts, max_size=3),
        "total": small,
        "least": small,
        "most": small,
        "note": texts,
    },
)
