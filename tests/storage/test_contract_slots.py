"""Limits on how many runs are driven at once, over both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.records import Slots
from stateknot.kernel.vocabulary import RunStatus
from tests.storage.hand_driver import admission

if TYPE_CHECKING:
    from stateknot.kernel.records import Fence
    from stateknot.kernel.store import Store


def admit(store: Store, thread_id: str, graph_id: str = "limited") -> str:
    with store.atomic():
        return store.admit(admission(thread_id, graph_id=graph_id)).id


def claim(store: Store, run_id: str, slots: Slots) -> Fence | None:
    with store.atomic():
        return store.claim(run_id, "worker", slots=slots)


def test_wq_17_claim_beyond_the_graphs_limit_gets_nothing(store: Store) -> None:
    first, second = admit(store, "a"), admit(store, "b")
    other = admit(store, "c", "other")
    one = Slots(of_graph=1)
    assert claim(store, first, one) is not None
    assert claim(store, second, one) is None
    assert claim(store, other, one) is not None


def test_wq_17_refused_claim_changes_nothing(store: Store) -> None:
    first, second = admit(store, "a"), admit(store, "b")
    claim(store, first, Slots())
    before = store.find_run(second)
    assert claim(store, second, Slots(of_graph=1)) is None
    assert store.find_run(second) == before


def test_wq_17_limit_of_all_counts_every_graph(store: Store) -> None:
    first, other = admit(store, "a"), admit(store, "b", "other")
    assert claim(store, first, Slots(in_all=1)) is not None
    assert claim(store, other, Slots(in_all=1)) is None
    assert claim(store, other, Slots(in_all=2)) is not None


def test_wq_17_run_that_ended_frees_its_slot(store: Store) -> None:
    """Also one that failed without a boundary, as after its last attempt."""
    first, second = admit(store, "a"), admit(store, "b")
    one = Slots(of_graph=1)
    fence = claim(store, first, one)
    assert fence is not None
    with store.atomic():
        store.finish(fence, RunStatus.FAILED, error={"code": "x"}, events=())
    assert claim(store, second, one) is not None


def test_wq_17_run_that_was_given_back_frees_its_slot(store: Store) -> None:
    first, second = admit(store, "a"), admit(store, "b")
    one = Slots(of_graph=1)
    fence = claim(store, first, one)
    assert fence is not None
    with store.atomic():
        store.release(fence)
    assert claim(store, second, one) is not None
