"""Folding updates into a state, and what a fold says it changed."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    model_validator,
)

from stateknot.errors import (
    InvalidConcurrentUpdateError,
    SerializationError,
    StateError,
)
from stateknot.kernel.commands import Overwrite
from stateknot.kernel.fold import StateDelta, StateFold
from stateknot.kernel.likeness import copy_model, is_alike
from stateknot.kernel.reducers import append
from stateknot.kernel.reduction import FoldError
from tests.kernel.state_samples import (
    Anything,
    Tally,
    json_values,
    tally_updates,
)

TALLY = StateFold(Tally)
updates_lists = st.lists(st.tuples(st.sampled_from("abc"), tally_updates), max_size=4)


def values_of(fold: StateFold, state: BaseModel) -> Any:
    return fold.codec.dump(state, fold.codec.names)


def start(fold: StateFold, **fields: Any) -> Any:
    return fold.initial(fields).state


def fold_one(fold: StateFold, state: Any, update: Any) -> Any:
    return fold.fold(state, [("node", update)]).state


@given(updates_lists, updates_lists)
def test_fold_of_concatenation_is_folds_in_sequence(one: Any, two: Any) -> None:
    state = start(TALLY, items=["x"])
    at_once = TALLY.fold(state, [*one, *two]).state
    in_turn = TALLY.fold(TALLY.fold(state, one).state, two).state
    assert is_alike(at_once, in_turn)


@given(updates_lists, updates_lists)
def test_delta_applied_gives_the_values_of_the_new_state(one: Any, two: Any) -> None:
    first = TALLY.fold(start(TALLY), one).state
    folded = TALLY.fold(first, two)
    applied = folded.delta.apply(values_of(TALLY, first))
    assert applied == values_of(TALLY, folded.state)


@given(updates_lists, updates_lists, updates_lists)
def test_deltas_joined_are_deltas_in_sequence(one: Any, two: Any, three: Any) -> None:
    state = start(TALLY)
    values = values_of(TALLY, state)
    deltas = []
    for updates in (one, two, three):
        folded = TALLY.fold(state, updates)
        state, deltas = folded.state, [*deltas, folded.delta]
    joined = deltas[0].then(deltas[1]).then(deltas[2])
    assert joined.apply(values) == values_of(TALLY, state)


@given(updates_lists)
def test_folded_state_is_what_storage_gives_back(updates: Any) -> None:
    folded = TALLY.fold(start(TALLY), updates).state
    assert is_alike(TALLY.codec.load(values_of(TALLY, folded)), folded)


@given(updates_lists)
def test_fold_leaves_the_state_before_as_it_was(updates: Any) -> None:
    """ST-07."""
    state = start(TALLY, items=["x"], labels={"y"})
    before = copy_model(state)
    TALLY.fold(state, updates)
    assert is_alike(state, before)


@given(json_values, json_values)
def test_open_field_takes_exactly_what_was_written(old: Any, new: Any) -> None:
    """`True` over `1` is a change, though Python calls them equal."""
    fold = StateFold(Anything)
    folded = fold.fold(start(fold, value=old), [("node", {"value": new})])
    assert is_alike(folded.state.value, new)  # type: ignore[attr-defined]
    assert bool(folded.delta.changes) is not is_alike(old, new)


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (0.0, -0.0), (0, False), ([1], [1.0])]
)
def test_equal_value_of_another_type_is_a_change(old: Any, new: Any) -> None:
    fold = StateFold(Anything)
    folded = fold.fold(start(fold, value=old), [("node", {"value": new})])
    assert folded.delta.changes == {"value": new}


class Priced(BaseModel):
    price: Decimal = Decimal(0)


def test_decimal_keeps_its_places() -> None:
    """ST-02: 1.10 is not 1.1."""
    fold = StateFold(Priced)
    state = fold_one(fold, start(fold, price="1.1"), {"price": Decimal("1.10")})
    assert str(state.price) == "1.10"


def test_accumulating_field_stores_what_was_added() -> None:
    state = start(TALLY, items=["a"], names=["a"])
    update = {"items": ["b", "c"], "names": ["a", "b"]}
    assert TALLY.fold(state, [("node", update)]).delta == StateDelta(
        appends={"items": ["b", "c"], "names": ["b"]}
    )


def test_several_additions_of_a_superstep_are_one() -> None:
    updates = [(node, {"items": node}) for node in "bcd"]
    folded = TALLY.fold(start(TALLY, items=["a"]), updates)
    assert folded.delta == StateDelta(appends={"items": ["b", "c", "d"]})


def test_delta_behind_a_replacement_forgets_what_was_added_before() -> None:
    added = StateDelta(appends={"items": ["b"], "names": ["x"]})
    replaced = StateDelta(changes={"items": ["c"]})
    joined = added.then(replaced).then(added)
    assert joined == StateDelta(
        changes={"items": ["c", "b"]}, appends={"names": ["x", "x"]}
    )
    assert joined.apply({"items": ["a"], "names": []}) == {
        "items": ["c", "b"],
        "names": ["x", "x"],
    }


def test_update_that_changes_nothing_stores_nothing() -> None:
    state = start(TALLY, items=["a"], note="n")
    for update in (None, {}, {"note": "n"}, {"items": []}, {"names": []}):
        folded = TALLY.fold(state, [("node", update)])
        assert folded.delta == StateDelta()
        assert is_alike(folded.state, state)


def test_overwrite_replaces_an_accumulating_field() -> None:
    """ST-06: the marker leaves no trace."""
    state = start(TALLY, items=["a"], note="n")
    update = {"items": Overwrite([]), "note": Overwrite("5")}
    folded = TALLY.fold(state, [("node", update)])
    assert folded.delta == StateDelta(changes={"items": [], "note": "5"})


def test_update_after_an_overwrite_accumulates_on_it() -> None:
    state = start(TALLY, items=["a"])
    updates = [("one", {"items": Overwrite(["b"])}), ("two", {"items": "c"})]
    folded = TALLY.fold(state, updates)
    assert folded.delta == StateDelta(changes={"items": ["b", "c"]})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("items", Overwrite([])),
        ("note", Overwrite("")),
        ("owner", "a"),
    ],
)
def test_field_that_takes_one_writer_refuses_two(field: str, value: Any) -> None:
    """Decision 13 and ST-06: the message names the field and both nodes."""
    updates = [("one", {}), ("two", {field: value}), ("three", {field: value})]
    with pytest.raises(FoldError) as caught:
        TALLY.fold(start(TALLY), updates)
    cause = caught.value.cause
    assert isinstance(cause, InvalidConcurrentUpdateError)
    assert caught.value.index == 1
    for word in (field, "two", "three"):
        assert repr(word) in str(cause)


def test_field_without_reducer_takes_the_last_in_active_order() -> None:
    updates = [("one", {"note": "1"}), ("two", {"note": "2"})]
    assert TALLY.fold(start(TALLY), updates).delta.changes == {"note": "2"}


@pytest.mark.parametrize(
    ("update", "word"),
    [
        ({"typo": 1, "note": ""}, "typo"),
        ({1: 2}, "'1'"),
        (Anything(value=1), "'value'"),
        ([1], "list"),
        ("text", "str"),
    ],
)
def test_update_that_names_no_field_is_refused(update: Any, word: str) -> None:
    """ST-09: the message names the key and the node."""
    with pytest.raises(FoldError) as caught:
        TALLY.fold(start(TALLY), [("one", None), ("two", {}), ("three", update)])
    assert caught.value.index == 1
    assert not caught.value.is_reducer
    assert word in str(caught.value)
    assert "'three'" in str(caught.value)


def test_refused_value_is_blamed_on_its_own_update() -> None:
    """ST-01: not on the last one, which only happened to be folded with it."""
    updates = [("a", {"note": "x"}), ("b", {"total": "no"}), ("c", {"note": "y"})]
    with pytest.raises(FoldError) as caught:
        TALLY.fold(start(TALLY), updates)
    assert caught.value.index == 1
    assert caught.value.is_reducer
    assert isinstance(caught.value.cause, TypeError)


@pytest.mark.parametrize("value", [[1], None, object(), {"a": 1}])
def test_value_of_another_type_is_refused_with_its_field(value: Any) -> None:
    updates = [("a", {"total": 1}), ("b", {"note": value}), ("c", {"total": 1})]
    with pytest.raises(FoldError) as caught:
        TALLY.fold(start(TALLY), updates)
    assert caught.value.index == 1
    assert isinstance(caught.value.cause, StateError)
    assert caught.value.cause.path == "note"


@pytest.mark.parametrize("value", [threading.Lock(), {2**70}, [[[object()]]]])
def test_value_that_cannot_be_stored_is_a_state_error(value: Any) -> None:
    """ST-05: not an exception that only the encoder knows."""
    fold = StateFold(Anything)
    with pytest.raises(FoldError) as caught:
        fold.fold(start(fold), [("node", {"value": value})])
    assert isinstance(caught.value.cause, SerializationError)
    assert not caught.value.is_reducer


def test_value_nested_too_deep_is_a_state_error() -> None:
    value: Any = []
    for _ in range(300):
        value = [value]
    fold = StateFold(Anything)
    with pytest.raises(FoldError) as caught:
        fold.fold(start(fold), [("node", {"value": value})])
    assert isinstance(caught.value.cause, StateError)


def grow(old: list[str], new: list[str]) -> list[str]:
    old.extend(new)
    return old


def hoard(old: Any, new: Any) -> Any:
    new.append("from the reducer")
    return new


class Careless(BaseModel):
    items: Annotated[list[str], grow] = []
    last: Annotated[list[str], hoard] = []


def test_reducer_that_works_in_place_changes_only_its_own_copy() -> None:
    """ST-07: else the change is in the state before, and never seen to be one."""
    fold = StateFold(Careless)
    state = start(fold, items=["a"])
    given = {"items": ["b"], "last": ["c"]}
    folded = fold.fold(state, [("node", given)])
    assert folded.delta.apply({})["items"] == ["a", "b"]
    assert (state.items, given["last"]) == (["a"], ["c"])


class Derived(BaseModel):
    """A total that a validator keeps in step with the lines."""

    lines: Annotated[list[int], append] = []
    total: int = 0

    @model_validator(mode="after")
    def sum_up(self) -> Derived:
        self.total = sum(self.lines)
        return self


def test_field_that_a_validator_derives_is_stored() -> None:
    """Else a run goes on with a total that changes when it is next loaded."""
    fold = StateFold(Derived)
    state = start(fold, lines=[1])
    folded = fold.fold(state, [("node", {"lines": [2]})])
    assert folded.delta == StateDelta(changes={"total": 3}, appends={"lines": [2]})
    assert folded.state == fold.codec.load(values_of(fold, folded.state))


class PostInit(BaseModel):
    lines: list[int] = []
    total: int = 0

    def model_post_init(self, context: Any, /) -> None:
        self.total = sum(self.lines)


def test_field_that_post_init_derives_is_stored() -> None:
    fold = StateFold(PostInit)
    folded = fold.fold(start(fold), [("node", {"lines": [1, 2]})])
    assert folded.delta.changes == {"lines": [1, 2], "total": 3}


class Bounded(BaseModel):
    items: Annotated[list[int], Field(min_length=2, max_length=4), append]
    ordered: Annotated[list[int], append, AfterValidator(sorted)] = []


def test_bounds_of_the_whole_list_hold_for_the_whole_list() -> None:
    fold = StateFold(Bounded)
    state = start(fold, items=[1, 2])
    folded = fold.fold(state, [("node", {"items": [3]})])
    assert folded.delta == StateDelta(appends={"items": [3]})
    with pytest.raises(FoldError):
        fold.fold(folded.state, [("node", {"items": [4, 5]})])


def test_validator_that_reorders_stores_the_whole_list() -> None:
    fold = StateFold(Bounded)
    state = start(fold, items=[1, 2], ordered=[5])
    folded = fold.fold(state, [("node", {"ordered": [7]})])
    assert folded.delta == StateDelta(appends={"ordered": [7]})
    assert fold.fold(state, [("node", {"ordered": [1]})]).delta == StateDelta(
        changes={"ordered": [1, 5]}
    )
