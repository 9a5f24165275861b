"""Starting runs: admitted with a wake-up in the caller's transaction, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django_q.models import OrmQ

from stateknot.errors import NotFoundError, RunError, StateError, ThreadBusyError
from stateknot.kernel.commands import GraphInput
from stateknot.models import Checkpoint, JournalEvent, Run, Thread
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import start_run
from tests.application.desk import ASK, LINE, queued, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def assert_nothing_is_stored() -> None:
    for model in (Thread, Run, Checkpoint, JournalEvent, OrmQ):
        assert not model.objects.exists(), model


def test_start_wakes_a_worker_once() -> None:
    run = start_run(LINE, {"total": 3}, thread_id="t")
    assert (run.status, run.thread.key) == ("pending", "t")
    assert queued() == [str(run.id)]
    assert work() == 1
    run = get_run(run.id)
    assert (run.status, run.steps) == ("completed", 3)
    snapshot = get_state("t")
    assert snapshot is not None
    assert snapshot.values.log == ["first", "second", "third"]


def test_start_in_a_transaction_that_rolls_back_leaves_nothing() -> None:
    """WQ-12: neither the thread nor the run nor the wake-up ever was."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        raise ZeroDivisionError(start_run(LINE, {}).id)
    assert_nothing_is_stored()


def test_start_in_a_transaction_that_commits_wakes_once() -> None:
    with transaction.atomic():
        run = start_run(LINE, {})
    assert queued() == [str(run.id)]


def test_start_with_a_bad_state_stores_nothing() -> None:
    """ST-01: what does not fit the model is refused before it is saved."""
    with pytest.raises(StateError, match="total"):
        start_run(LINE, {"total": "many"})
    assert_nothing_is_stored()


@pytest.mark.parametrize(
    "metadata",
    [{"note": "\x00"}, {"note": "\ud800"}, {"rate": float("nan")}, {"big": 2**60}],
)
def test_start_with_metadata_that_not_every_database_takes_is_refused(
    metadata: dict[str, Any],
) -> None:
    with pytest.raises(StateError, match="metadata"):
        start_run(LINE, {}, metadata=metadata)
    assert_nothing_is_stored()


@pytest.mark.parametrize("thread_id", ["a\x00b", "x" * 256, "\ud800"])
def test_start_on_a_thread_id_that_no_column_takes_is_refused(thread_id: str) -> None:
    with pytest.raises(RunError, match="thread id"):
        start_run(LINE, {}, thread_id=thread_id)
    assert_nothing_is_stored()


@pytest.mark.parametrize("key", ["a\x00b", "x" * 256, "\ud800"])
def test_start_with_an_idempotency_key_that_no_column_takes_is_refused(
    key: str,
) -> None:
    with pytest.raises(RunError, match="idempotency key"):
        start_run(LINE, {}, idempotency_key=key)
    assert_nothing_is_stored()


def test_start_of_an_unknown_graph_names_those_that_are_known() -> None:
    with pytest.raises(NotFoundError, match=LINE):
        start_run("desk.nothing", {})
    with pytest.raises(NotFoundError, match=r"1\.0\.0"):
        start_run(LINE, {}, version="9.9.9")


def test_start_keeps_what_it_was_given() -> None:
    run = start_run(LINE, {}, metadata={"order": 7}, priority=5, actor="ada")
    assert (run.metadata, run.priority, run.actor) == ({"order": 7}, 5, "ada")
    assert get_timeline(run.id)[0].actor == "ada"


def test_start_with_inputs_enters_at_their_nodes() -> None:
    start_run(LINE, {}, thread_id="t", inputs=[GraphInput.node("third")])
    work()
    snapshot = get_state("t")
    assert snapshot is not None
    assert snapshot.values.log == ["third"]


def test_second_start_on_a_held_thread_is_refused() -> None:
    first = start_run(ASK, {}, thread_id="t")
    work()
    with pytest.raises(ThreadBusyError) as raised:
        start_run(ASK, {}, thread_id="t")
    assert (raised.value.run_id, raised.value.status) == (str(first.id), "interrupted")
    assert Run.objects.count() == 1
    assert queued() == []


def test_start_on_a_free_thread_begins_a_new_lineage() -> None:
    """Decision 11: its input record names the previous head as parent."""
    start_run(LINE, {}, thread_id="t")
    work()
    before = get_state("t")
    second = start_run(LINE, {"total": 9}, thread_id="t")
    snapshot = get_state("t")
    assert snapshot is not None
    assert before is not None
    assert (snapshot.values.total, snapshot.values.log) == (9, [])
    assert snapshot.parent_config == before.config
    assert second.thread.runs.count() == 2


def test_same_key_gives_the_same_run_and_wakes_once() -> None:
    first = start_run(LINE, {}, idempotency_key="k")
    again = start_run(LINE, {}, idempotency_key="k")
    assert first.id == again.id
    assert Run.objects.count() == 1
    assert len(queued()) == 1


def test_same_key_after_the_end_gives_the_ended_run() -> None:
    first = start_run(LINE, {}, thread_id="t", idempotency_key="k")
    work()
    again = start_run(LINE, {}, thread_id="t", idempotency_key="k")
    assert (again.id, again.status) == (first.id, "completed")
    assert queued() == []


@pytest.mark.parametrize(
    "other", [{"state": {"total": 1}}, {"thread_id": "other"}, {"inputs": ["second"]}]
)
def test_same_key_for_another_request_is_refused(other: dict[str, Any]) -> None:
    start_run(LINE, {}, idempotency_key="k")
    if "inputs" in other:
        other = {"inputs": [GraphInput.node(node) for node in other["inputs"]]}
    with pytest.raises(RunError, match="'k' was used"):
        start_run(LINE, other.pop("state", {}), idempotency_key="k", **other)
    assert Run.objects.count() == 1


def test_same_key_for_another_graph_is_another_start() -> None:
    start_run(LINE, {}, idempotency_key="k")
    start_run(ASK, {}, idempotency_key="k")
    assert Run.objects.count() == 2


def test_starts_without_a_key_are_all_different() -> None:
    assert start_run(LINE, {}).id != start_run(LINE, {}).id
