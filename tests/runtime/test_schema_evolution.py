"""States that were written by an earlier version of their model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from stateknot import RunStatus, append
from stateknot.errors import RevisionMismatchError, StateError
from tests.runtime.graphs import Flaky, add_fan, new_builder

if TYPE_CHECKING:
    from stateknot import CompiledGraph


class Before(BaseModel):
    """The model that a thread was written with."""

    name: str = ""
    items: Annotated[list[str], append] = []
    size: int = 0


def handler(_state: Any) -> dict[str, Any]:
    return {"items": ["a"]}


def graph_over(model: type[BaseModel], checkpointer: Any) -> CompiledGraph:
    builder = add_fan(new_builder("tests.evolving", state=model), {"a": handler})
    return builder.compile().with_checkpointer(checkpointer)


def written(checkpointer: Any) -> CompiledGraph:
    """Thread "t", completed under the model of before."""
    graph = graph_over(Before, checkpointer)
    graph.run_with_thread("t", {"name": "Ada", "items": ["x"], "size": 7})
    return graph


def read(model: type[BaseModel], checkpointer: Any) -> list[Any]:
    """The history of thread "t" under another model, newest first."""
    written(checkpointer)
    return graph_over(model, checkpointer).get_state_history("t")


def test_added_field_takes_its_default(checkpointer: Any) -> None:
    """Decision 12: the newest state and every older one."""

    class Added(Before):
        tags: list[str] = ["new"]

    history = read(Added, checkpointer)
    assert [s.values.items for s in history] == [["x", "a"], ["x"]]
    assert [s.values.tags for s in history] == [["new"], ["new"]]
    assert "state_error" not in history[0].metadata


@pytest.mark.parametrize(
    "alias", ["name", AliasChoices("name", "label"), AliasChoices("label", "name")]
)
def test_renamed_field_is_found_by_its_alias(alias: Any, checkpointer: Any) -> None:
    """Decision 12: the value is kept, not replaced by the default."""

    class Renamed(BaseModel):
        title: str = Field(default="none", validation_alias=alias)
        items: Annotated[list[str], append] = []
        size: int = 0

    assert [s.values.title for s in read(Renamed, checkpointer)] == ["Ada", "Ada"]


def test_renamed_list_keeps_what_was_appended(checkpointer: Any) -> None:
    """Decision 12: a field that is stored in pieces, too."""

    class Renamed(BaseModel):
        rows: Annotated[list[str], append] = Field([], validation_alias="items")

    assert [s.values.rows for s in read(Renamed, checkpointer)] == [["x", "a"], ["x"]]


def test_validator_brings_an_old_value_up(checkpointer: Any) -> None:
    """Decision 12: a number of before, a text of now."""

    class Retyped(Before):
        size: str = ""  # type: ignore[assignment]

        @field_validator("size", mode="before")
        @classmethod
        def _from_number(cls, value: Any) -> Any:
            return f"{value} cm" if isinstance(value, int) else value

    assert [s.values.size for s in read(Retyped, checkpointer)] == ["7 cm", "7 cm"]


def test_model_validator_splits_an_old_field(checkpointer: Any) -> None:
    """Decision 12: whatever a validator of the whole model can do."""

    class Split(BaseModel):
        first: str
        items: Annotated[list[str], append] = []

        @model_validator(mode="before")
        @classmethod
        def _from_name(cls, data: Any) -> Any:
            name = data.pop("name", None)
            return data if name is None else {"first": name.upper(), **data}

    assert [s.values.first for s in read(Split, checkpointer)] == ["ADA", "ADA"]


def test_removed_field_is_left_out(checkpointer: Any) -> None:
    fewer = create_model("Fewer", name=(str, ""))
    (newest, _) = read(fewer, checkpointer)
    assert newest.values.model_dump() == {"name": "Ada"}


def test_state_that_no_longer_fits_is_readable(checkpointer: Any) -> None:
    """ST-01: a dict and the reason, for each record; the history has no hole."""
    stricter = create_model(
        "Stricter", name=(str, ...), items=(list[str], []), owner=(str, ...)
    )
    history = read(stricter, checkpointer)
    assert [s.values["items"] for s in history] == [["x", "a"], ["x"]]
    assert [s.values["size"] for s in history] == [7, 7]
    assert all("owner" in s.metadata["state_error"] for s in history)
    assert [s.metadata["step"] for s in history] == [1, 0]


def test_error_of_an_old_state_shows_no_secret(checkpointer: Any) -> None:
    """Decision 12: the value of another field is not in the reason."""
    stricter = create_model("Stricter", owner=(str, ...))
    (newest, _) = read(stricter, checkpointer)
    assert len(newest.metadata["state_error"]) < 500


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.retry("t"),
        lambda graph: graph.update_state("t", {"size": 8}),
        lambda graph: graph.bulk_update_state("t", [{"size": 8}]),
        lambda graph: graph.fork_state("t", "u"),
    ],
)
def test_other_revision_changes_nothing(call: Any, checkpointer: Any) -> None:
    """Section 4: both digests are named, and the thread is left to its own revision."""

    class Added(Before):
        tags: list[str] = []

    flaky = Flaky("a")
    old = add_fan(new_builder("tests.evolving", state=Before), {"a": flaky})
    graph = old.compile().with_checkpointer(checkpointer)
    with pytest.raises(Exception, match="failed on call 1"):
        graph.run_with_thread("t", {})
    newer = graph_over(Added, checkpointer)
    before = graph.get_state_history("t")
    with pytest.raises(RevisionMismatchError) as refused:
        call(newer)
    assert (refused.value.expected, refused.value.found) == (graph.digest, newer.digest)
    assert graph.get_state_history("t") == before
    assert checkpointer.find_thread_run("u") is None


def strict_about_size() -> type[BaseModel]:
    """`Before` with a validator, which no schema shows: the revision is the same."""

    class Strict(BaseModel):
        name: str = ""
        items: Annotated[list[str], append] = []
        size: int = 0

        @field_validator("size")
        @classmethod
        def _is_small(cls, value: int) -> int:
            if value > 5:
                raise ValueError("is too large by today's rules")
            return value

    Strict.__name__ = Strict.__qualname__ = Before.__name__
    return Strict


def test_run_whose_state_no_longer_fits_stops_before_any_handler(
    checkpointer: Any,
) -> None:
    """ST-01: a clear error, a failed run, the head where it was."""
    flaky = Flaky("a")
    old = add_fan(new_builder("tests.evolving", state=Before), {"a": flaky})
    graph = old.compile().with_checkpointer(checkpointer)
    with pytest.raises(Exception, match="failed on call 1"):
        graph.run_with_thread("t", {"size": 7})
    strict = graph_over(strict_about_size(), checkpointer)
    assert strict.digest == graph.digest
    before = graph.get_state_history("t")
    with pytest.raises(StateError, match=r"size.*today's rules"):
        strict.retry("t")
    assert graph.get_state_history("t") == before
    assert "today's rules" in strict.get_state("t").metadata["state_error"]
    run = checkpointer.find_thread_run("t")
    assert (run.status, flaky.calls) == (RunStatus.FAILED, 1)
    assert "today's rules" in run.error["message"]


def test_state_that_no_longer_fits_is_mended_by_hand(checkpointer: Any) -> None:
    """ST-01, decision 5: an edit that makes it fit is the way out."""
    written(checkpointer)
    strict = graph_over(strict_about_size(), checkpointer)
    strict.update_state("t", {"size": 5}, as_node=None)
    assert strict.get_state("t").values.size == 5
    with pytest.raises(StateError, match="size"):
        strict.update_state("t", {"size": 6})
