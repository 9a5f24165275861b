"""Children whose code changed while their parent waited: refused, and nothing is lost.

A process with other code says both digests and leaves the run to one that has it
(section 4), whether a caller drives or a worker. What a handler calls by hand is only
known when it calls.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stateknot import (
    START,
    Command,
    ResumeTarget,
    RunStatus,
    Timer,
    adapter_subgraph,
    shared_subgraph,
)
from stateknot.errors import NodeFailedError, RevisionMismatchError
from stateknot.registry import register
from tests.runtime.drives import admit, attempts_of, drive
from tests.runtime.families import line, parent_of
from tests.runtime.graphs import Asker, Counted, Flaky, Tally, new_builder, note

pytestmark = pytest.mark.usefixtures("empty_registry")
DAY = timedelta(days=1)


def child(last: str = "", **nodes: Any) -> Any:
    """A child of these nodes; `last` makes another revision of it."""
    return line("tests.child", nodes | ({last: note(last, 1)} if last else {}))


def revisions(**nodes: Any) -> tuple[Any, Any]:
    """A child as it was, and as it is after a deploy."""
    return child(**nodes), child("new", **nodes)


def other_process(monkeypatch: pytest.MonkeyPatch, *graphs: Any) -> None:
    """Go on as a process that has registered `graphs` and nothing else."""
    monkeypatch.setattr("stateknot.registry._graphs", {})
    for graph in graphs:
        register(graph)


def run_of(store: Any) -> Any:
    return store.find_thread_run("t")


def journal(store: Any) -> list[Any]:
    return [row.events for row in store.list_journal(run_of(store).id)]


class Refused:
    """What a refusal must leave as it is, and what it must say."""

    def __init__(self, store: Any, old: Any, new: Any) -> None:
        self.store, self.digests = store, (old.digest, new.digest)
        self.before = self._seen()

    def _seen(self) -> Any:
        told, run = journal(self.store), run_of(self.store)
        return run, attempts_of(self.store), told

    def check(self, call: Any) -> None:
        """`call` refuses, names both digests, and changes nothing."""
        with pytest.raises(RevisionMismatchError) as refused:
            call()
        assert (refused.value.expected, refused.value.found) == self.digests
        assert all(digest in str(refused.value) for digest in self.digests)
        assert self._seen() == self.before


def test_caller_with_another_child_refuses_an_answer(checkpointer: Any) -> None:
    """Section 4: before any handler runs, and before the answer is stored."""
    old, new = revisions(ask=Asker())
    before, after = (parent_of(graph, checkpointer) for graph in (old, new))
    assert before.digest == after.digest
    before.run_with_thread("t", {})
    refused = Refused(checkpointer, old, new)
    refused.check(lambda: after.resume("t", Command(resume=7)))
    assert before.resume("t", Command(resume=7)).state.total == 9


@pytest.mark.parametrize("is_branch", [True, False])
def test_caller_with_another_child_refuses_a_failed_one(
    checkpointer: Any, *, is_branch: bool
) -> None:
    """Section 4: a retry and a resume from a checkpoint go on with the child too."""
    old, new = revisions(first=note("first", 1), flaky=Flaky("flaky"))
    before, after = (parent_of(graph, checkpointer) for graph in (old, new))
    with pytest.raises(NodeFailedError):
        before.run_with_thread("t", {})
    head = before.get_state("t").config["checkpoint_id"]
    target = ResumeTarget(head)
    refused = Refused(checkpointer, old, new)
    refused.check(
        lambda: after.resume_from("t", target) if is_branch else after.retry("t")
    )
    assert before.retry("t").state.log == ["before", "first", "flaky", "after"]


def test_older_checkpoint_of_a_child_that_ended_is_refused(checkpointer: Any) -> None:
    """Section 4: a branch from a pause takes the child as it stood there."""
    old, new = revisions(ask=Asker())
    before, after = (parent_of(graph, checkpointer) for graph in (old, new))
    before.run_with_thread("t", {})
    paused = ResumeTarget(before.get_state("t").config["checkpoint_id"])
    before.resume("t", Command(resume=1))
    refused = Refused(checkpointer, old, new)
    refused.check(lambda: after.resume_from("t", paused, Command(resume=2)))
    assert before.resume_from("t", paused, Command(resume=2)).state.total == 4


def test_child_that_ended_needs_no_code(checkpointer: Any) -> None:
    """What a call gave is remembered; only what goes on needs its revision."""
    old, new = revisions(one=note("one", 1))
    calls = [old, old, new]

    def host(_state: Tally) -> dict[str, Any]:
        made = calls.pop(0).run({}).state.log
        if len(calls) == 1:
            raise ValueError("after the call")
        return {"log": made}

    graph = parent_of(host, checkpointer)
    calls.pop(0)
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert graph.retry("t").state.log == ["before", "one", "after"]


def test_worker_with_another_child_leaves_the_run(
    time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 4: not claimed, not failed; a worker that has the code goes on."""
    nap = Counted(lambda _: Timer(DAY))
    old, new = revisions(nap=nap, rest=note("rest", 1))
    before, after = (parent_of(graph, time.store) for graph in (old, new))
    admit(before)
    assert drive(time.store).status is RunStatus.WAITING
    time.pass_by(2 * DAY)
    other_process(monkeypatch, after)
    Refused(time.store, old, new).check(lambda: drive(time.store))
    other_process(monkeypatch, before)
    assert drive(time.store).status is RunStatus.COMPLETED
    assert nap.calls == 1


def test_grandchild_of_another_revision_is_found_first(checkpointer: Any) -> None:
    """Section 4: all levels are looked at before a handler of any runs."""
    old, new = revisions(ask=Asker())
    graphs, first = [], Counted(note("first", 1))
    for inner in (old, new):
        nodes = {"first": first, "inner": shared_subgraph(inner)}
        graphs.append(parent_of(line("tests.middle", nodes), checkpointer))
    before, after = graphs
    before.run_with_thread("t", {})
    refused = Refused(checkpointer, old, new)
    refused.check(lambda: after.resume("t", Command(resume=1)))
    assert before.resume("t", Command(resume=1)).state.log.count("first") == 1
    assert first.calls == 1


def test_adapter_with_another_child_refuses(checkpointer: Any) -> None:
    """Section 4: a child on a state of its own is pinned as well."""
    old, new = revisions(ask=Asker())
    before, after = (
        parent_of(
            adapter_subgraph(g, lambda s: s, lambda _, c: {"log": c.log}), checkpointer
        )
        for g in (old, new)
    )
    before.run_with_thread("t", {})
    refused = Refused(checkpointer, old, new)
    refused.check(lambda: after.resume("t", Command(resume=1)))


def test_superseded_child_is_gone_on_with_by_its_own_code(checkpointer: Any) -> None:
    """Section 4: old revisions stay registered until their runs drain."""
    old, new = revisions(ask=Asker())
    before, after = (parent_of(graph, checkpointer) for graph in (old, new))
    before.run_with_thread("t", {})
    after.run_with_thread("u", {})
    register(new, superseded=[old])
    assert "new" not in after.resume("t", Command(resume=1)).state.log
    assert "new" in after.resume("u", Command(resume=1)).state.log


class ByHand:
    """Parents with a node `host` that calls whichever child there is now."""

    def __init__(self, graph: Any) -> None:
        self.child = graph

    def host(self, _state: Tally) -> dict[str, Any]:
        """Call, and swallow what can be swallowed, as authors do."""
        try:
            return {"log": self.child.run({}).state.log}
        except Exception:  # noqa: BLE001 - what this tests
            return {"log": ["swallowed"]}

    def parent(self, checkpointer: Any, beside: Any, *, is_parallel: bool) -> Any:
        """`a` and `host` side by side, in that order."""
        builder = new_builder("tests.by_hand").add_node("a", beside)
        builder.add_node("host", self.host).add_edge(START, ["a", "host"])
        builder = builder.with_parallel() if is_parallel else builder
        return builder.compile().with_checkpointer(checkpointer)


@pytest.mark.parametrize("is_parallel", [True, False])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_call_of_another_revision_fails_nothing(
    checkpointer: Any, *, is_parallel: bool, durability: str
) -> None:
    """Section 4: known at the call only; finished siblings are kept, nothing failed."""
    old, new = revisions(ask=Asker())
    made, beside = ByHand(old), Counted(note("beside", 1))
    graph = made.parent(checkpointer, beside, is_parallel=is_parallel)
    graph = graph.with_durability(durability)
    graph.run_with_thread("t", {})
    made.child = new
    with pytest.raises(RevisionMismatchError) as refused:
        graph.resume("t", Command(resume=5))
    assert (refused.value.expected, refused.value.found) == (old.digest, new.digest)
    assert run_of(checkpointer).status is RunStatus.PENDING
    assert graph.get_state("t").metadata["failed_node"] is None
    made.child = old
    assert graph.resume("t").state.log == ["beside", "ask=5"]
    assert beside.calls == 1


@pytest.mark.parametrize("is_parallel", [True, False])
def test_sibling_that_ran_beside_a_refused_call_is_kept(
    checkpointer: Any, *, is_parallel: bool
) -> None:
    """Section 4: nothing is lost, also of what ran in the pass that was refused."""
    old, new = revisions(nap=lambda _: Timer(DAY), rest=note("rest", 1))
    made, beside = ByHand(old), Counted(note("beside", 1))
    graph = made.parent(checkpointer, beside, is_parallel=is_parallel)
    assert graph.run_with_thread("t", {}).status is RunStatus.WAITING
    made.child = new
    with pytest.raises(RevisionMismatchError):
        graph.retry("t", reuse_results=False)
    assert beside.calls == 2
    made.child = old
    assert graph.retry("t").state.log == ["beside", "rest"]
    assert beside.calls == 2


def test_worker_gives_back_a_run_whose_call_it_cannot_make(time: Any) -> None:
    """Section 4: no other worker has to wait for the lease to run out."""
    old, new = revisions(nap=lambda _: Timer(DAY), rest=note("rest", 1))
    made = ByHand(old)
    admit(made.parent(time.store, note("a"), is_parallel=False))
    assert drive(time.store).status is RunStatus.WAITING
    time.pass_by(2 * DAY)
    made.child = new
    with pytest.raises(RevisionMismatchError):
        drive(time.store)
    assert run_of(time.store).status is RunStatus.PENDING
    made.child = old
    assert drive(time.store).status is RunStatus.COMPLETED


def test_call_two_levels_down_fails_no_level(checkpointer: Any) -> None:
    """Section 4: neither the child that called nor its parent has failed."""
    old, new = revisions(ask=Asker())
    made = ByHand(old)
    graph = parent_of(line("tests.middle", {"call": made.host}), checkpointer)
    graph.run_with_thread("t", {})
    made.child = new
    with pytest.raises(RevisionMismatchError):
        graph.resume("t", Command(resume=5))
    children = checkpointer.list_children(run_of(checkpointer).id)
    assert [run.status for run in children] == [RunStatus.PENDING]
    made.child = old
    assert graph.resume("t").state.log == ["before", "ask=5", "after"]
