"""A model of everything that may be done to a thread, over both stores at once.

hypothesis makes up what happens: runs, failures, pauses, answers, edits, forks,
branches, and a process that dies between any two writes; with parents whose nodes run
children as well. After each of them both stores show the same, every record that was
seen before is as it was, no finished work was done again without a death in between,
and nothing ran twice without a reason in the journal. Read `scripted.py` and
`scripted_families.py` for the graphs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from stateknot import Command, Overwrite, ResumeTarget
from tests.runtime.graphs import PATIENCE, Tally, add_fan, new_builder, note
from tests.runtime.scripted import (
    BEHAVIOURS,
    NODES,
    Side,
    database_side,
    memory_side,
)
from tests.runtime.scripted_families import (
    CHILD_NODES,
    database_family,
    memory_family,
)
from tests.runtime.seen import check_lineage, family_of, snapshot_of, thread_of

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_THREADS = 3
REASONS = ("run.reopened", "lease.expired", "node.retry_scheduled")
"""What the journal tells where a handler may be called again."""
EDITS = (["edit"], Overwrite(["over"]))
places = st.integers(0, 9)
scripts = st.fixed_dictionaries(
    {
        node: st.sampled_from(("go on",) * 5 + BEHAVIOURS)
        for node in (*NODES, *CHILD_NODES)
    }
)
deaths = st.one_of(st.none(), st.none(), st.integers(0, 6))


def operation(**draws: Any) -> Any:
    """A rule that also draws what handlers do, and after how many writes both die."""
    return rule(script=scripts, dies_after=deaths, place=places, **draws)


def is_due(model: Any) -> bool:
    """Whether anything is due on a thread, so that not everything is refused."""
    return any(head.next_nodes for head in model.heads())


def is_asked(model: Any) -> bool:
    return any(head.pending_interrupts for head in model.heads())


def is_free(model: Any) -> bool:
    """Whether a thread is held by no run, so that a start is not always refused."""
    store = model.sides[0].store
    runs = [store.find_thread_run(thread) for thread in model.threads]
    return any(run is None or not run.status.is_holding for run in runs)


class Threads(RuleBasedStateMachine):
    """The operations; each is done on both sides and must end alike."""

    makers: tuple[Callable[..., Side], ...] = (memory_side, database_side)

    @initialize(script=scripts, is_parallel=st.booleans())
    def begin(self, script: dict[str, str], is_parallel: bool) -> None:
        self.sides = [make(is_parallel=is_parallel) for make in self.makers]
        self.threads = [f"model-{uuid4()}"]
        self.deaths = 0
        self.known: list[dict[tuple[str, str], Any]] = [{} for _ in self.sides]
        first = self.threads[0]
        self.do(script, None, first, lambda graph: graph.run_with_thread(first, {}))

    def heads(self) -> list[Any]:
        graph = self.sides[0].graph
        found = [graph.get_state(thread) for thread in self.threads]
        return [head for head in found if head is not None]

    def pick(self, place: int, wanted: Any = None) -> str:
        """A thread; of those whose head is `wanted`, if there is one."""
        wanted = wanted or (lambda _head: True)
        found = [h.config["thread_id"] for h in self.heads() if wanted(h)]
        threads = found or self.threads
        return str(threads[place % len(threads)])

    def do(
        self, script: dict[str, str], dies_after: int | None, thread: str, call: Any
    ) -> None:
        """Do it on both sides; a side whose process died is started again."""
        for side in self.sides:
            side.script, side.dying.left = script, dies_after
        ends = [side.attempt(call) for side in self.sides]
        assert len(set(ends)) == 1, ends
        self.deaths += ends[0] == "death"
        for side in self.sides:
            if side.dying.is_dead:
                side.restart()
            side.dying.left = None
        self.check(thread)

    @precondition(is_free)
    @operation(total=st.integers(0, 3))
    def run(self, script: Any, dies_after: int | None, place: int, total: int) -> None:
        thread = self.pick(place)
        given = {"total": total}
        self.do(script, dies_after, thread, lambda g: g.run_with_thread(thread, given))

    @precondition(is_due)
    @operation()
    def retry(self, script: Any, dies_after: int | None, place: int) -> None:
        thread = self.pick(place, lambda head: head.next_nodes)
        self.do(script, dies_after, thread, lambda g: g.retry(thread, step_limit=400))

    @precondition(is_due)
    @operation(value=st.sampled_from(["yes", None, 0]))
    def resume(
        self, script: Any, dies_after: int | None, place: int, value: Any
    ) -> None:
        thread = self.pick(place, lambda head: head.next_nodes)
        command = Command(resume=value)
        self.do(script, dies_after, thread, lambda g: g.resume(thread, command))

    @precondition(is_asked)
    @operation(which=places)
    def answer(
        self, script: Any, dies_after: int | None, place: int, which: int
    ) -> None:
        """Answer one of the open questions by its id."""
        thread = self.pick(place, lambda head: head.pending_interrupts)

        def call(graph: Any) -> Any:
            asked = graph.get_state(thread).pending_interrupts
            name = asked[which % len(asked)].id
            return graph.resume(thread, Command(answers={name: which}))

        self.do(script, dies_after, thread, call)

    @operation(as_node=st.sampled_from([None, *NODES]), many=st.booleans())
    def edit(
        self,
        script: Any,
        dies_after: int | None,
        place: int,
        as_node: str | None,
        many: bool,
    ) -> None:
        thread, update = self.pick(place), {"log": EDITS[place % 2]}
        updates = [{"mark": "x"}, (update, as_node)] if many else [(update, as_node)]
        self.do(
            script, dies_after, thread, lambda g: g.bulk_update_state(thread, updates)
        )

    @precondition(lambda self: len(self.threads) < MOST_THREADS)
    @operation(back=places)
    def fork(self, script: Any, dies_after: int | None, place: int, back: int) -> None:
        source, target = self.pick(place), f"model-{uuid4()}"
        self.do(
            script,
            dies_after,
            target,
            lambda g: g.fork_state(source, target, at(g, source, back)),
        )
        if self.sides[0].graph.get_state(target) is not None:
            self.threads.append(target)

    @operation(back=places)
    def resume_from(
        self, script: Any, dies_after: int | None, place: int, back: int
    ) -> None:
        thread = self.pick(place)

        def call(graph: Any) -> Any:
            target = ResumeTarget(at(graph, thread, back))
            return graph.resume_from(thread, target, step_limit=400)

        self.do(script, dies_after, thread, call)

    def check(self, thread: str) -> None:
        """What must hold of a thread after anything was done to it."""
        histories = [side.graph.get_state_history(thread) for side in self.sides]
        both = list(zip(self.sides, histories, strict=True))
        one, other = (thread_of(side.graph, thread, told) for side, told in both)
        assert one == other
        ours, theirs = (family_of(side.store, thread) for side in self.sides)
        assert ours == theirs
        if not self.deaths:
            # A death in a concurrent step may lose a result on one side only: whether
            # it was stored before its sibling ended is a matter of time.
            assert self.sides[0].work() == self.sides[1].work()
        for (side, told), known in zip(both, self.known, strict=True):
            if one:
                check_lineage(side.graph, thread, told)
            check_records(side, known, told)
            check_work(side, self.deaths)
            check_reasons(side)

    def teardown(self) -> None:
        for thread in getattr(self, "threads", []):
            self.check(thread)


def check_records(
    side: Side, known: dict[tuple[str, str], Any], history: list[Any]
) -> None:
    """Records never change: those seen last are read again, new ones are noted."""
    for (key, checkpoint_id), seen in list(known.items())[-4:]:
        assert shown(side.graph.get_state(key, checkpoint_id)) == seen
    for snapshot in history:
        config = snapshot.config
        place = (config["thread_id"], config["checkpoint_id"])
        assert known.setdefault(place, shown(snapshot)) == shown(snapshot)


def check_work(side: Side, deaths: int) -> None:
    """No activation is done twice, except that each death may lose what it did."""
    done = {key: n for (key, _, how), n in side.calls.items() if how == "done"}
    assert all(n <= 1 + deaths for n in done.values()), done


def check_reasons(side: Side) -> None:
    """No activation is called again without an entry of the journal that says why.

    A child goes on because its parent did, so its parent's entries count as well.
    """
    tries: dict[str, int] = {}
    for (run_id, _), times in side.tries.items():
        tries[run_id] = max(times, tries.get(run_id, 0))
    for run_id, times in tries.items():
        if times == 1:
            continue
        told = told_of(side.store, run_id)
        assert times <= 1 + sum(told.count(kind) for kind in REASONS), (times, told)


def told_of(store: Any, run_id: str | None) -> list[str]:
    """The kinds of what the journals of a run and of those above it tell."""
    if run_id is None:
        return []
    own = [event.kind for row in store.list_journal(run_id) for event in row.events]
    return own + told_of(store, store.find_run(run_id).parent_run_id)


def at(graph: Any, thread: str, back: int) -> str | None:
    """The id of a checkpoint of the history; None for a thread that has none."""
    history = graph.get_state_history(thread)
    return history[back % len(history)].config["checkpoint_id"] if history else None


def shown(snapshot: Any) -> Any:
    """What of a record may never change; its questions are answered some time."""
    seen = snapshot_of(snapshot)
    return {**seen, "asks": None, "config": snapshot.config}


class Families(Threads):
    """The same, of parents whose nodes run children."""

    makers = (memory_family, database_family)


@pytest.mark.django_db(transaction=True)
def test_stores_agree_on_whatever_happens_to_threads() -> None:
    """Issue 3: run, fail, pause, answer, edit, fork, branch and die, in any order."""
    run_state_machine_as_test(Threads, settings=bounded(max_examples=12))


@pytest.mark.django_db(transaction=True)
def test_stores_agree_on_whatever_happens_to_families() -> None:
    """Issue 4: children fail, ask, wait, are retried and answered, and die half way."""
    run_state_machine_as_test(Families, settings=bounded(max_examples=8))


def bounded(*, max_examples: int) -> settings:
    """The same examples each time, and no more than can be waited for."""
    return settings(
        max_examples=max_examples,
        stateful_step_count=14,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class InOrder:
    """Handlers that finish in a given order, whatever their active order is."""

    def __init__(self, order: list[str]) -> None:
        self.order = order
        self.ended = {name: threading.Event() for name in order}

    def handler(self, name: str) -> Any:
        def wait_for_those_before(state: Tally) -> Any:
            for earlier in self.order[: self.order.index(name)]:
                assert self.ended[earlier].wait(PATIENCE)
            self.ended[name].set()
            return note(name, len(state.log) + 1)(state)

        return wait_for_those_before


@given(order=st.permutations(["a", "b", "c", "d"]))
@settings(max_examples=24, derandomize=True, deadline=None)
def test_final_state_does_not_depend_on_who_finishes_first(order: list[str]) -> None:
    """Decision 1: updates fold in active order."""
    handlers = InOrder(order)
    nodes = {name: handlers.handler(name) for name in sorted(order)}
    graph = add_fan(new_builder(), nodes).with_parallel().compile()
    assert graph.run({}).state == Tally(total=4, log=["a", "b", "c", "d"])


def test_dying_store_dies_where_it_is_told() -> None:
    """The model's own tool: what was not stored is done again, and nothing else."""
    side = memory_side(is_parallel=False)
    side.dying.left = 2
    assert side.attempt(lambda graph: graph.run_with_thread("t", {})) == "death"
    assert side.dying.is_dead
    side.restart()
    assert side.attempt(lambda graph: graph.retry("t")) == "completed"
    work = side.work()
    assert (work["a", "done"], work["join", "done"]) == (1, 2)
