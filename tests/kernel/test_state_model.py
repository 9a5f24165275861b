"""State models that could not be stored field by field are refused at once."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel

from stateknot.errors import GraphError
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.commands import Secret
from stateknot.kernel.reducers import append
from stateknot.kernel.state_model import check_state_model, marks_of
from tests.kernel.state_samples import Rich, Tally


class Whole(RootModel[list[int]]):
    pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Leaky(BaseModel):
    kept: int = 0
    lost: int = Field(default=0, exclude=True)
    at_times: int = Field(default=0, exclude_if=lambda value: value == 0)


class Crossed(BaseModel):
    one: int = Field(alias="two")
    two: int = Field(validation_alias=AliasChoices("deux", "one"))


class Hidden(BaseModel):
    items: list[Annotated[int, append]] = []
    maybe: list[Annotated[str, Secret]] | None = None


@pytest.mark.parametrize(
    ("model", "texts"),
    [
        (Whole, ["RootModel"]),
        (Open, ["extra fields"]),
        (Leaky, ["'lost'", "'at_times'"]),
        (Crossed, ["'two'", "'one'"]),
        (Hidden, ["'items'", "'maybe'"]),
        (dict, ["pydantic model"]),
        (Rich(), ["pydantic model"]),
    ],
)
def test_every_fault_of_a_model_is_told(model: Any, texts: list[str]) -> None:
    issues = check_state_model(model)
    assert len(issues) == len(texts)
    for issue, text in zip(issues, texts, strict=True):
        assert text in issue.message


def test_ordinary_model_has_no_fault() -> None:
    assert check_state_model(Rich) == []
    assert check_state_model(Tally) == []


def test_builder_tells_the_faults_with_the_others() -> None:
    builder = BlueprintBuilder("sample", state=Leaky)
    with pytest.raises(GraphError) as caught:
        builder.blueprint()
    assert [issue.kind for issue in caught.value.issues] == [
        "MissingStart",
        "Validation",
        "Validation",
    ]


class Optional(BaseModel):
    inside: Annotated[list[int], append] | None = None
    outside: Annotated[list[int] | None, append] = None
    plain: list[int] | None = None


def test_mark_on_a_member_of_a_union_counts_for_the_field() -> None:
    """An author who writes `| None` behind it would lose the reducer in silence."""
    marks = {name: marks_of(info) for name, info in Optional.model_fields.items()}
    assert marks == {"inside": [append], "outside": [append], "plain": []}
