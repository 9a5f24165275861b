"""Journals: dense offsets, lineage, and runs that are never held up by them."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from stateknot import Command, shared_subgraph
from stateknot.errors import NodeFailedError
from stateknot.kernel.records import Event
from stateknot.runtime import delivery
from stateknot.runtime.clock import SystemClock
from stateknot.runtime.delivery import Delivery
from stateknot.runtime.journal import MemoryJournal, StoreJournal
from stateknot.runtime.observations import Observation
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import PATIENCE, Asker, Flaky, add_fan, new_builder, note


@pytest.fixture
def journal() -> MemoryJournal:
    """Give an empty journal."""
    return MemoryJournal()


def three_steps(checkpointer: Any, journal: Any) -> Any:
    graph = line("tests.three", {name: note(name) for name in ("a", "b", "c")})
    return graph.with_checkpointer(checkpointer).with_event_journal(journal)


def test_offsets_are_dense_from_zero(checkpointer: Any, journal: Any) -> None:
    """Scenario 166."""
    run_id = three_steps(checkpointer, journal).run_with_thread("t", {}).run_id
    told = journal.read_from(run_id)
    assert [o.offset for o in told] == list(range(len(told)))
    assert [o.event_id for o in told[:2]] == [f"{run_id}-0", f"{run_id}-1"]
    assert (told[0].event.kind, told[-1].event.kind) == ("run.started", "run.completed")


def test_tail_is_read_from_an_offset(checkpointer: Any, journal: Any) -> None:
    """Scenario 166; an unknown run has none."""
    run_id = three_steps(checkpointer, journal).run_with_thread("t", {}).run_id
    assert journal.read_from(run_id, 2) == journal.read_from(run_id)[2:]
    assert journal.read_from(run_id, -1) == journal.read_from(run_id)
    assert journal.read_from("unknown") == []


def test_lineage_is_stamped(checkpointer: Any, journal: Any) -> None:
    """Scenario 166: thread, graph, run, and the checkpoint where one was saved."""
    done = three_steps(checkpointer, journal).run_with_thread("t", {})
    told = journal.read_from(done.run_id)
    assert {(o.thread_id, o.graph_id, o.root_run_id) for o in told} == {
        ("t", "tests.three", done.run_id)
    }
    assert {(o.parent_run_id, o.namespace) for o in told} == {(None, ())}
    saved = [o.checkpoint_id for o in told if o.checkpoint_id is not None]
    assert (len(saved), saved[-1]) == (3, done.checkpoint_id)
    assert {o.event.kind for o in told if o.checkpoint_id} == {"checkpoint.saved"}


def test_step_is_the_last_one_seen(checkpointer: Any, journal: Any) -> None:
    """Section 8.2: a boundary belongs to the step in front of it."""
    run_id = three_steps(checkpointer, journal).run_with_thread("t", {}).run_id
    told = journal.read_from(run_id)
    assert told[0].step is None
    assert [o.step for o in told if o.event.kind == "checkpoint.saved"] == [1, 2, 3]
    assert told[-1].step == 3


def test_child_has_the_root_of_its_parent(checkpointer: Any, journal: Any) -> None:
    """Scenario 169 (D16): in the reference it is its own root."""
    child = line("tests.c", {"c": note("c")}).with_event_journal(journal)
    middle = line("tests.m", {"in": shared_subgraph(child)})
    graph = parent_of(middle, checkpointer)
    done = graph.run_with_thread("t", {})
    (between,) = checkpointer.list_children(done.run_id)
    (below,) = checkpointer.list_children(between.id)
    told = journal.read_from(below.id)
    assert {(o.root_run_id, o.parent_run_id) for o in told} == {
        (done.run_id, between.id)
    }
    assert told[0].namespace == ("2:0:child", "1:0:in")


def test_failed_run_is_told_to_its_end(checkpointer: Any, journal: Any) -> None:
    """Scenario 166."""
    graph = line("tests.f", {"a": Flaky("a")}).with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.with_event_journal(journal).run_with_thread("t", {})
    assert journal.read_from(failed.value.run_id)[-1].event.kind == "run.failed"


def test_journal_goes_on_over_a_resume(checkpointer: Any, journal: Any) -> None:
    """Section 8.2: complete behind a pause, and still dense behind the resume; what was
    restored is told as well (D16)."""
    graph = line("tests.ask", {"ask": Asker()}).with_checkpointer(checkpointer)
    graph = graph.with_event_journal(journal)
    run_id = graph.run_with_thread("t", {}).run_id
    assert journal.read_from(run_id)[-1].event.kind == "checkpoint.saved"
    before = len(journal.read_from(run_id))
    graph.resume("t", Command(resume=1))
    told = journal.read_from(run_id)
    assert [o.offset for o in told] == list(range(len(told)))
    assert told[before].event.kind == "checkpoint.restored"


def test_edits_and_forks_are_told(checkpointer: Any, journal: Any) -> None:
    """D16: the reference's go past the journal."""
    graph = three_steps(checkpointer, journal)
    run_id = graph.run_with_thread("t", {}).run_id
    config = graph.update_state("t", {"mark": "edited"})
    assert journal.read_from(run_id)[-1].checkpoint_id == config["checkpoint_id"]
    forked = graph.fork_state("t", "fork")
    fork_run = checkpointer.find_thread_run("fork")
    (told,) = journal.read_from(fork_run.id)
    assert told.checkpoint_id == forked["checkpoint_id"]


def test_journal_of_the_store_is_read_alike(checkpointer: Any) -> None:
    """Section 8.2: dense offsets, lineage and order, from the boundaries' rows."""
    graph = line("tests.three", {name: note(name) for name in ("a", "b", "c")})
    done = graph.with_checkpointer(checkpointer).run_with_thread("t", {})
    kept = StoreJournal(checkpointer)
    told = kept.read_from(done.run_id)
    assert [o.offset for o in told] == list(range(len(told)))
    assert (told[0].event.kind, told[-1].event.kind) == (
        "run.admitted",
        "run.completed",
    )
    saved = [o for o in told if o.checkpoint_id is not None]
    assert [o.step for o in saved] == [1, 2, 3]
    assert saved[-1].checkpoint_id == done.checkpoint_id
    assert kept.read_from(done.run_id, 5) == told[5:]
    assert kept.read_from(str(SystemClock().new_id())) == []


def test_journal_of_the_store_knows_the_root_of_a_child(checkpointer: Any) -> None:
    """Scenario 169."""
    graph = parent_of(line("tests.c", {"c": note("c")}), checkpointer)
    done = graph.run_with_thread("t", {})
    told = StoreJournal(checkpointer).read_from(done.child_runs[0].run_id)
    assert told[-1].event.kind == "run.completed"
    assert {(o.root_run_id, o.parent_run_id) for o in told} == {
        (done.run_id, done.run_id)
    }


class Broken:
    """A journal that keeps nothing."""

    def append(self, observation: Observation) -> int:
        raise OSError("full")

    def read_from(self, run_id: str, offset: int = 0) -> list[Observation]:
        return []


def test_journal_that_fails_does_not_fail_the_run(checkpointer: Any) -> None:
    """Section 8.2."""
    done = three_steps(checkpointer, Broken()).run_with_thread("t", {})
    assert done.state.log == ["a", "b", "c"]


def run_record(checkpointer: Any = None) -> Any:
    from stateknot import MemoryCheckpointer

    store = MemoryCheckpointer()
    graph = add_fan(new_builder(), {"a": note("a")}).compile()
    graph.with_checkpointer(store).run_with_thread("t", {})
    return store.find_thread_run("t")


def test_what_a_journal_refuses_is_counted_and_leaves_no_gap() -> None:
    """Section 8.2: append errors are counted, and order and density are kept."""
    kept = MemoryJournal()

    class Picky(MemoryJournal):
        def append(self, observation: Observation) -> int:
            if observation.event.kind == "bad":
                raise ValueError("bad")
            return kept.append(observation)

    run = run_record()
    writer = Delivery(Picky(), run, SystemClock())
    for kind in ("one", "bad", "two"):
        writer(Event(kind=kind))
    writer.close()
    told = kept.read_from(run.id)
    assert [(o.offset, o.event.kind) for o in told] == [(0, "one"), (1, "two")]
    assert (writer.failed, writer.dropped) == (1, 0)


def test_slow_journal_drops_rather_than_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 8.2: what does not fit the queue is dropped and counted."""
    monkeypatch.setattr(delivery, "LONGEST_QUEUE", 3)
    writing, go_on = threading.Event(), threading.Event()

    class Slow(MemoryJournal):
        def append(self, observation: Observation) -> int:
            writing.set()
            assert go_on.wait(PATIENCE)
            return super().append(observation)

    slow, run = Slow(), run_record()
    writer = Delivery(slow, run, SystemClock())
    writer(Event(kind="first"))
    assert writing.wait(PATIENCE)
    for number in range(5):
        writer(Event(kind=f"late-{number}"))
    go_on.set()
    writer.close()
    assert writer.dropped == 2
    assert [o.event.kind for o in slow.read_from(run.id)] == [
        "first",
        "late-0",
        "late-1",
        "late-2",
    ]


def test_flush_waits_for_what_was_taken() -> None:
    """Section 8.2: flush blocks."""
    kept, run = MemoryJournal(), run_record()
    writer = Delivery(kept, run, SystemClock())
    for number in range(50):
        writer(Event(kind=f"e{number}"))
    writer.flush()
    assert len(kept.read_from(run.id)) == 50
    writer.close()


def test_observation_leaves_the_process_and_comes_back() -> None:
    told = Observation(
        run_id="r",
        root_run_id="root",
        parent_run_id="p",
        thread_id="t",
        graph_id="g",
        namespace=("1:0:n",),
        offset=4,
        at=datetime(2026, 1, 5, 9, 0, 0, 250_000, tzinfo=UTC),
        step=2,
        event=Event(kind="node.started", step=2, node="n", data={"x": 1}),
        checkpoint_id=None,
    )
    data = json.loads(json.dumps(told.to_json()))
    assert (data["event_id"], data["timestamp_ms"]) == ("r-4", 1767603600250)
    assert Observation.from_json(data) == told
