"""The state codec: what is validated, stored and given back, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    SecretStr,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from stateknot.errors import SerializationError, StateError
from stateknot.kernel.commands import Secret
from stateknot.kernel.fold import StateFold
from stateknot.kernel.likeness import is_alike
from stateknot.kernel.profile import encode
from stateknot.kernel.state import MASK, StateCodec
from tests.kernel.state_samples import (
    Anything,
    Colour,
    Level,
    Line,
    Mood,
    Rich,
    json_values,
    rich_states,
)

T = TypeVar("T")


def round_trip(state: BaseModel) -> Any:
    """Store a state as the engine does, and load it in another codec."""
    codec = StateCodec(type(state))
    values = codec.store(state, codec.names)
    codec.restore(state, values)
    return StateCodec(type(state)).load(values)


@given(rich_states)
def test_stored_state_comes_back_alike(state: Rich) -> None:
    """ST-02: equal in value and in type, at every depth."""
    assert is_alike(round_trip(state), state)


@given(json_values)
def test_json_value_of_an_open_field_comes_back_alike(value: Any) -> None:
    assert is_alike(round_trip(Anything(value=value)).value, value)


@pytest.mark.parametrize(
    "value",
    [
        Mood.GOOD,
        Level.LOW,
        Colour.RED,
        Decimal("1.10"),
        (1, 2),
        {1, 2},
        {2**70},
        b"bytes",
        OrderedDict(a=1),
        {1: "a"},
        Line(),
        datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        object(),
        float("nan"),
        2**53,
        "a\x00",
    ],
)
def test_value_that_would_come_back_otherwise_is_refused(value: Any) -> None:
    """ST-02: refused at the write with the path, never changed in silence."""
    with pytest.raises(SerializationError) as caught:
        round_trip(Anything(value=value))
    assert caught.value.path.startswith("value")


def test_enum_in_a_union_with_text_is_refused() -> None:
    class Vague(BaseModel):
        mood: Any

    assert round_trip(Vague(mood="good")).mood == "good"
    with pytest.raises(SerializationError, match="mood"):
        round_trip(Vague(mood=Mood.GOOD))


@pytest.mark.parametrize("fold", [0, 1])
def test_time_in_a_repeated_hour_is_stored(fold: int) -> None:
    """A clock that was set back must not stop every run of that hour."""
    zone = ZoneInfo("Europe/Berlin")
    when = datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=zone)
    restored = round_trip(Rich(when=when)).when
    assert restored.utcoffset() == when.utcoffset()
    assert restored.replace(tzinfo=None, fold=fold) == when.replace(tzinfo=None)


def test_sets_are_stored_alike_in_every_process() -> None:
    """A set's order depends on the process's hash seed; stored bytes must not."""
    program = (
        "from stateknot.kernel.profile import encode\n"
        "from stateknot.kernel.state import StateCodec\n"
        "from tests.kernel.state_samples import Line, Rich\n"
        "words = 'one two three four five six'.split()\n"
        "lines = [Line(tags=set(words))]\n"
        "codec = StateCodec(Rich)\n"
        "state = Rich(tags=frozenset(words), lines=lines)\n"
        "print(encode(codec.dump(state, codec.names)).decode())\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]


class Aliased(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    order_id: int = Field(alias="orderId")
    inner: Line = Field(default_factory=Line, validation_alias="innerLine")


@pytest.mark.parametrize("key", ["order_id", "orderId"])
def test_state_is_given_by_name_or_by_alias(key: str) -> None:
    codec = StateCodec(Aliased)
    state = codec.validate({key: 7})
    assert codec.store(state, ["order_id"]) == {"order_id": 7}
    assert round_trip(state) == state


class Swapped(BaseModel):
    """Aliases that are each other's names; further in, an author may do that."""

    one: int = Field(alias="two")
    two: int = Field(alias="one")


class Outer(BaseModel):
    inner: Swapped


def test_swapped_aliases_of_a_nested_model_are_stored_by_name() -> None:
    state = Outer.model_validate({"inner": {"two": 1, "one": 2}})
    assert state.inner.one == 1
    assert round_trip(state) == state


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    when: datetime
    price: Decimal
    pair: tuple[int, ...]
    tags: frozenset[str]
    colour: Colour


def test_strict_frozen_model_comes_back_alike() -> None:
    state = Strict(
        when=datetime.fromisoformat("2026-01-01T00:00:00+00:00"),
        price=Decimal("2.50"),
        pair=(1, 2),
        tags=frozenset("ab"),
        colour=Colour.BLUE,
    )
    assert is_alike(round_trip(state), state)


class Box(BaseModel, Generic[T]):
    content: T
    kind: Literal["box"] = "box"


def test_generic_model_comes_back_alike() -> None:
    state = Box[list[Decimal]](content=[Decimal("1.10")])
    assert is_alike(round_trip(state), state)


class Area(BaseModel):
    model_config = ConfigDict(extra="forbid")
    side: int = 1

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own order
    @property
    def area(self) -> int:
        return self.side**2


class Plot(BaseModel):
    areas: list[Area] = []
    raw: Json[list[int]] = []


def test_computed_fields_are_not_stored() -> None:
    state = Plot.model_validate({"areas": [{"side": 3}], "raw": "[1]"})
    codec = StateCodec(Plot)
    assert codec.store(state, ["areas"]) == {"areas": [{"side": 3}]}
    assert round_trip(state) == state


class Numbered(BaseModel):
    """A serializer of one field, with the validator that reads it back."""

    numbers: set[int] = set()

    @field_serializer("numbers")
    def write(self, numbers: set[int]) -> str:
        return ",".join(map(str, sorted(numbers)))

    @field_validator("numbers", mode="before")
    @classmethod
    def read(cls, value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value


def test_field_with_its_own_form_comes_back_alike() -> None:
    assert round_trip(Numbered(numbers={3, 1, 2})).numbers == {1, 2, 3}


class Flat(BaseModel):
    one: int = 1

    @model_serializer
    def flat(self) -> dict[str, int]:
        return {"uno": self.one}


def test_serializer_that_renames_fields_is_refused() -> None:
    codec = StateCodec(Flat)
    with pytest.raises(SerializationError, match="serializer of Flat"):
        codec.store(Flat(), codec.names)


class Touchy(BaseModel):
    number: int = 0
    even: Annotated[int, AfterValidator(lambda n: 1 // n)] = 1

    @model_validator(mode="after")
    def check(self) -> Touchy:
        if self.number > 9:
            raise KeyError(self.number)
        return self


@pytest.mark.parametrize("values", [{"number": 10}, {"even": 0}])
def test_validator_that_breaks_is_told_as_a_state_error(values: Any) -> None:
    """ST-05: pydantic passes most exceptions of validators on as they are."""
    codec = StateCodec(Touchy)
    with pytest.raises(StateError, match=r"KeyError|ZeroDivisionError"):
        codec.validate(values)
    with pytest.raises(StateError, match=r"KeyError|ZeroDivisionError"):
        codec.load(values)


def test_problem_is_told_with_path_rule_and_value() -> None:
    """ST-01."""
    with pytest.raises(StateError) as caught:
        StateCodec(Rich).validate({"lines": [{"count": "many"}], "price": None})
    assert caught.value.path == "price"
    assert "lines.0.count" in str(caught.value)
    assert "'many'" in str(caught.value)


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    """ST-05."""
    with pytest.raises(StateError, match="Unshowable"):
        StateCodec(Rich).validate({"line": Unshowable()})


class Guarded(BaseModel):
    token: Annotated[str | None, Secret] = None
    pin: Annotated[int, Secret()] = 0
    maybe: Annotated[str, Secret] | None = None
    pair: Annotated[Any, Secret] = None

    @model_validator(mode="after")
    def check(self) -> Guarded:
        if self.pin == 4711:
            raise ValueError("the pin is known")
        return self


@pytest.mark.parametrize(
    "values",
    [
        {"token": ["hunter2"]},
        {"pin": "hunter2"},
        {"maybe": 1.5, "token": ["hunter2"]},
        {"token": "hunter2", "pin": 4711},
        {"pair": ("hunter2",)},
        {"pair": "hunter2\x00"},
    ],
)
def test_error_tells_nothing_of_a_secret(values: Any) -> None:
    """Decision 12: masked in every output, tracebacks of failures included."""
    with pytest.raises(StateError) as caught:
        StateFold(Guarded).initial(values)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_secrets_are_masked() -> None:
    masked = StateCodec(Guarded).mask({"token": "a", "maybe": "b", "other": 1})
    assert masked == {"token": MASK, "maybe": MASK, "other": 1}


class Veiled(BaseModel):
    token: SecretStr = SecretStr("")


def test_type_that_hides_its_value_is_refused() -> None:
    """Stored would be its asterisks, and the value lost."""
    with pytest.raises(SerializationError, match="token"):
        round_trip(Veiled(token=SecretStr("hunter2")))


def test_value_over_the_limit_is_refused() -> None:
    """ST-10."""
    codec = StateCodec(Anything, maximum_bytes=1000)
    with pytest.raises(SerializationError, match="limit is 1,000") as caught:
        codec.store(Anything(value="x" * 1000), ["value"])
    assert caught.value.path == "value"


def test_model_of_another_class_is_read_by_its_fields() -> None:
    class Given(BaseModel):
        value: int = 3

    assert StateCodec(Anything).validate(Given()).value == 3  # type: ignore[attr-defined]


def test_part_of_a_field_is_stored_in_the_fields_form() -> None:
    codec = StateCodec(Rich)
    stored = codec.store_part("price", Decimal("1.10"))
    assert (stored, encode(stored)) == ("1.10", b'"1.10"')
    assert is_alike(codec.restore_part("price", stored), Decimal("1.10"))
