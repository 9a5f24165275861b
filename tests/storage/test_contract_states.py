"""States read back as they were folded, on both stores, whatever a thread went through.

Each step of `script` is what a superstep, an edit, a branch or a new run stores; beside
the store a dictionary is folded by hand, and in the end every checkpoint is compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stateknot import MemoryCheckpointer
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.vocabulary import RunStatus
from stateknot.kernel.writes import Reopening
from tests.storage.hand_driver import HandDriver, new_id

if TYPE_CHECKING:
    from stateknot.kernel.store import Store

START = {"log": [], "mark": "", "big": "x" * 50}
Step = tuple[str, int]
STEPS = st.tuples(
    st.sampled_from(["append", "set", "overwrite", "both", "edit", "branch", "run"]),
    st.integers(0, 99),
)
DELTAS: dict[str, Any] = {
    "append": lambda n: StateDelta(appends={"log": [n]}),
    "set": lambda n: StateDelta(changes={"mark": str(n)}),
    "overwrite": lambda n: StateDelta(changes={"log": [n, n]}),
    "both": lambda n: StateDelta(changes={"mark": str(n)}, appends={"log": [n]}),
    "edit": lambda n: StateDelta(changes={"mark": f"edit {n}"}),
}


class Model:
    """A thread in a store, and what each of its checkpoints must read as."""

    def __init__(self, store: Store) -> None:
        self.store, self.thread_id = store, new_id()
        self.expected: dict[str, dict[str, Any]] = {}
        self.driver = HandDriver(store, self.thread_id, values=START)
        self.expected[self.driver.draft.id] = START
        self.order = [self.driver.draft.id]

    def step(self, kind: str, number: int) -> None:
        if kind == "branch":
            self._branch(self.order[number % len(self.order)])
        elif kind == "run":
            self._rest()
            self.driver = HandDriver(self.store, self.thread_id, values=START)
            self._expect(self.driver.draft.id, START)
        else:
            self._write(kind, DELTAS[kind](number))

    def _write(self, kind: str, delta: StateDelta) -> None:
        driver, parent = self.driver, self.driver.draft.id
        if kind == "edit":
            self._rest()
            draft = driver.write(changes=delta.changes)
        else:
            self._drive()
            draft = driver.commit(changes=delta.changes, appends=delta.appends)
        self._expect(draft.id, delta.apply(self.expected[parent]))

    def _expect(self, checkpoint_id: str, values: dict[str, Any]) -> None:
        self.expected[checkpoint_id] = values
        self.order.append(checkpoint_id)

    def _drive(self) -> None:
        if self.driver.record().status is not RunStatus.RUNNING:
            self.driver.claim_again()

    def _rest(self) -> None:
        if self.driver.record().status is RunStatus.RUNNING:
            with self.store.atomic():
                self.store.finish(
                    self.driver.fence, RunStatus.FAILED, error=None, events=[]
                )

    def _branch(self, base_id: str) -> None:
        """Go on from `base_id` in a new lineage, whose first record is whole."""
        self._rest()
        driver = self.driver
        lineage = self.store.last_sequence(self.thread_id) + 1
        with self.store.atomic():
            self.store.reopen(
                Reopening(run_id=driver.run.id, head_id=base_id, lineage=lineage)
            )
        assert driver.claim() is not None
        driver.draft = replace(
            driver.draft, id=base_id, sequence=lineage - 1, lineage=lineage
        )
        values = self.expected[base_id]
        driver.commit(changes=values)
        self._expect(driver.draft.id, values)

    def check(self) -> None:
        read = self.store.find_checkpoint
        for checkpoint_id, values in self.expected.items():
            found = read(self.thread_id, checkpoint_id)
            assert found is not None
            assert found.values == values
        newest = read(self.thread_id)
        assert newest is not None
        assert newest.id == self.driver.draft.id
        for record in self.store.list_checkpoints(self.thread_id):
            assert record.values == self.expected[record.id]


@given(script=st.lists(STEPS, max_size=14))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_every_checkpoint_reads_as_it_was_folded(
    store: Store, script: list[Step]
) -> None:
    model = Model(store)
    for kind, number in script:
        model.step(kind, number)
    model.check()


@pytest.mark.django_db
@given(script=st.lists(STEPS, max_size=10))
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_stores_give_the_same_history(script: list[Step]) -> None:
    from stateknot.storage import DjangoCheckpointer

    histories = []
    for store in (MemoryCheckpointer(), DjangoCheckpointer()):
        model = Model(store)
        for kind, number in script:
            model.step(kind, number)
        records = store.list_checkpoints(model.thread_id)
        histories.append([(r.sequence, r.lineage, r.step, r.values) for r in records])
    assert histories[0] == histories[1]


def test_history_page_over_a_branch_is_whole(store: Store) -> None:
    """A page that begins in one lineage and ends in another reads both."""
    model = Model(store)
    for step in [("append", 1), ("append", 2), ("set", 3), ("branch", 1)]:
        model.step(*step)
    model.step("append", 9)
    found = store.list_checkpoints(model.thread_id, limit=3)
    assert [record.values["log"] for record in found] == [[1, 9], [1], [1]]
    assert [record.sequence for record in found] == [5, 4, 1]
