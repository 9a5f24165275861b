"""Which fields an update sets, in each of its forms."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from stateknot.errors import StateError, ValidationError
from stateknot.kernel.commands import Overwrite
from stateknot.kernel.fold import StateFold
from stateknot.kernel.reduction import FoldError
from tests.kernel.state_samples import Tally


class Change(BaseModel):
    """An update model: one item at a time, and a note that must be short."""

    model_config = ConfigDict(str_max_length=5)
    note: str = ""
    total: int = 0


class Foreign(BaseModel):
    delta: int = 0


def test_model_sets_only_the_fields_given_to_it() -> None:
    fold = StateFold(Tally)
    assert fold.check_update("node", Tally(note="x", total=3)) == {
        "total": 3,
        "note": "x",
    }


def test_fields_come_in_the_order_of_the_model() -> None:
    """A model's set of given fields has an order of the process's own."""
    given = dict.fromkeys(("note", "most", "least", "names", "items"))
    model = Tally.model_construct(_fields_set=set(given), **given)
    for update in (given, model):
        assert list(StateFold(Tally).check_update("node", update)) == [
            "items",
            "names",
            "least",
            "most",
            "note",
        ]


@pytest.mark.parametrize("update", [{"note": "x"}, Change(note="x")])
def test_update_model_reads_every_form(update: Any) -> None:
    fold = StateFold(Tally, update_model=Change)
    assert fold.check_update("node", update) == {"note": "x"}


@pytest.mark.parametrize(
    "update", [{"note": "too long"}, {"note": Overwrite("too long")}, {"items": ["a"]}]
)
def test_update_model_refuses_what_does_not_fit_it(update: Any) -> None:
    fold = StateFold(Tally, update_model=Change)
    with pytest.raises(StateError, match=r"note|items"):
        fold.check_update("node", update)


def test_overwrite_goes_through_the_update_model() -> None:
    """ST-06: the marker is no value that the model could know."""
    fold = StateFold(Tally, update_model=Change)
    update = {"total": Overwrite("7"), "note": "x"}
    assert fold.check_update("node", update) == {"total": Overwrite(7), "note": "x"}
    folded = fold.fold(fold.initial({"total": 5}).state, [("node", update)])
    assert folded.delta.changes == {"total": 7, "note": "x"}


def test_update_model_with_fields_of_its_own_needs_a_reducer() -> None:
    with pytest.raises(ValidationError, match="delta"):
        StateFold(Tally, update_model=Foreign)
    StateFold(Tally, update_model=Foreign, reducer=count_up)


def count_up(state: Tally, updates: list[tuple[str, Any]]) -> Any:
    for node, update in updates:
        state.items.append(node)
        state.total += update.pop("delta")
    return state


def name_a_stranger(_state: Tally, _updates: Any) -> Any:
    return {"typo": 1}


def give_a_list(state: Tally, _updates: Any) -> Any:
    return [state]


def give_changes(_state: Tally, updates: Any) -> Any:
    return {"note": ", ".join(node for node, _ in updates)}


def break_down(_state: Tally, _updates: Any) -> Any:
    raise LookupError("nothing found")


def test_whole_state_reducer_folds_updates_in_order() -> None:
    fold = StateFold(Tally, reducer=count_up)
    state = fold.initial({"items": ["x"], "total": 1}).state
    given = [("a", {"delta": 2}), ("b", {"delta": 3})]
    folded = fold.fold(state, given)
    assert folded.delta.changes == {"total": 6}
    assert folded.delta.appends == {"items": ["a", "b"]}
    assert state == Tally(items=["x"], total=1)
    assert given[0][1] == {"delta": 2}


def test_whole_state_reducer_may_give_the_changed_fields() -> None:
    fold = StateFold(Tally, reducer=give_changes)
    folded = fold.fold(fold.initial({}).state, [("a", {}), ("b", {})])
    assert folded.delta.changes == {"note": "a, b"}


def test_whole_state_reducer_is_not_called_without_updates() -> None:
    fold = StateFold(Tally, reducer=break_down)
    state = fold.initial({}).state
    assert fold.fold(state, [("a", None)]).state is state


@pytest.mark.parametrize(
    ("reducer", "text"),
    [
        (name_a_stranger, "typo"),
        (give_a_list, "returned a list"),
        (break_down, "nothing found"),
    ],
)
def test_whole_state_reducer_that_fails_is_told(reducer: Any, text: str) -> None:
    fold = StateFold(Tally, reducer=reducer)
    with pytest.raises(FoldError, match=text) as caught:
        fold.fold(fold.initial({}).state, [("a", {}), ("b", {})])
    assert (caught.value.index, caught.value.is_reducer) == (1, True)


def test_update_model_guards_a_whole_state_reducer() -> None:
    fold = StateFold(Tally, update_model=Foreign, reducer=count_up)
    with pytest.raises(FoldError, match="delta") as caught:
        fold.fold(fold.initial({}).state, [("a", {"delta": "many"}), ("b", {})])
    assert (caught.value.index, caught.value.is_reducer) == (0, False)
