"""Running the activations of one superstep, one after the other or side by side.

Gives an outcome for each activation in active order, whatever finished first. Earlier
finished results are reused and open questions are not asked again. See Note [Flushing].

Note [Flushing]
~~~~~~~~~~~~~~~
In a concurrent step a finished result is only folded when its last sibling is done. To
keep a crash in between from running it again, results that wait are written in batches:
at most `FLUSH_WINDOW_SECONDS` after the first of them finished. That window is the one
time in which a finished node may run again.
"""

from __future__ import annotations

import contextvars
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.errors import RunCancelledError
from stateknot.kernel.limits import FLUSH_WINDOW_SECONDS
from stateknot.kernel.once import lost_start, unfinished_failure
from stateknot.kernel.outcome import Asked, Completed, Failed, NotRun
from stateknot.kernel.result_codec import decode_result
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.runtime.child_records import ended_runs
from stateknot.runtime.child_stops import ChildOfOtherCode
from stateknot.runtime.context import Fork
from stateknot.runtime.ran import Ran, stored_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stateknot.kernel.outcome import Outcome
    from stateknot.kernel.records import Activation, AttemptRecord
    from stateknot.runtime.execution import ChildRun
    from stateknot.runtime.node_runner import NodeRunner
    from stateknot.runtime.position import Position

_MOST_SYNC_THREADS = 64
_MOST_THREADS = 1_024


@dataclass(slots=True, kw_only=True)
class StepResult:
    """The outcome of every activation in active order, and the attempts behind them.

    `attempts` were not written yet; `flushed` names results that were. `child_runs`
    are those of this pass, `reused_runs` those behind results of an earlier one. It is
    broken off where a handler was stopped, or not started, since the run is to be
    cancelled; then the attempts carry their results.
    """

    outcomes: list[tuple[Activation, Outcome]]
    attempts: list[AttemptRecord] = field(default_factory=list)
    flushed: frozenset[str] = frozenset()
    child_runs: list[ChildRun] = field(default_factory=list)
    reused_runs: list[ChildRun] = field(default_factory=list)
    is_broken_off: bool = False

    def finished(self) -> list[AttemptRecord]:
        """The attempts that were not written yet."""
        return [a for a in self.attempts if a.id not in self.flushed]


@dataclass(slots=True, kw_only=True)
class StepRunner:
    """Runs supersteps of one drive. `flush` writes attempts under the fence."""

    nodes: NodeRunner
    is_parallel: bool
    max_concurrency: int | None
    flush: Callable[[Sequence[AttemptRecord]], None]

    def run(self, position: Position) -> StepResult:
        """Run what is due at `position`."""
        flushed = {ran.attempt.id for ran in position.spread.values()}
        self._close_lost(position)
        due = {a.id: self._known(position, a) for a in position.pending}
        to_run = [a for a in position.pending if due[a.id] is None]
        side_by_side = self.is_parallel and len(position.pending) > 1 and bool(to_run)
        if side_by_side:
            ran = self._run_concurrent(position, to_run, flushed)
        else:
            ran = self._run_sequential(position, due, flushed)
        if len(ran) < len(to_run) and self._is_broken_off(ran, side_by_side):
            return StepResult(
                outcomes=[],
                attempts=self._finished(ran.values()),
                flushed=frozenset(flushed),
                is_broken_off=True,
            )
        outcomes = [
            (a, self._outcome(due[a.id], ran.get(a.id))) for a in position.pending
        ]
        ran |= position.spread
        attempts = [ran[a.id].attempt for a in position.pending if a.id in ran]
        reused = [
            a.id
            for a in position.pending
            if isinstance(due[a.id], Completed) and a.id not in position.spread
        ]
        return StepResult(
            outcomes=outcomes,
            attempts=attempts,
            flushed=frozenset(flushed),
            child_runs=[*position.spread_runs, *self.nodes.told.take()],
            reused_runs=self._reused_runs(position, reused),
        )

    def _is_broken_off(self, ran: dict[str, Ran], side_by_side: bool) -> bool:
        """Whether a cancel is why not everything ran to its end.

        One after the other, nothing runs behind a failure or a question anyway.
        """
        if not self.nodes.stop.is_cancelled:
            return False
        is_whole = all(isinstance(item.outcome, Completed) for item in ran.values())
        return side_by_side or is_whole

    def to_spread(self, position: Position) -> list[Activation]:
        """What is due at `position`, if it may run side by side; else nothing."""
        self._close_lost(position)
        due = [a for a in position.pending if self._known(position, a) is None]
        return due if self.is_parallel and len(due) > 1 else []

    def run_one(self, position: Position, activation: Activation) -> Ran:
        """Run one activation of a step whose others run elsewhere.

        Not if it is known already what became of it: its worker was lost behind that.
        """
        kept = position.results.get(activation.id)
        known = self._known(position, activation)
        if kept is not None and known is not None:
            return Ran(outcome=known, attempt=kept, is_recorded=True)
        ids = [due.id for due in position.pending]
        fork = Fork(index=ids.index(activation.id), node=activation.node)
        self._announce(position, activation, fork)
        return self.nodes.run(position, activation, fork)

    def _reused_runs(self, position: Position, reused: list[str]) -> list[ChildRun]:
        """The child runs behind results that an earlier pass kept."""
        if not reused:
            return []
        return ended_runs(self.nodes.store, position.run, reused)

    def _close_lost(self, position: Position) -> None:
        """End attempts that an earlier process began and can no longer end."""
        now = self.nodes.config.clock.now()
        lost = [
            lost_start(kept, now)
            for kept in position.results.values()
            if kept.status is AttemptStatus.RUNNING
        ]
        if lost:
            self.flush(lost)
            position.results |= {kept.activation_id: kept for kept in lost}

    def _known(self, position: Position, activation: Activation) -> Outcome | None:
        """What is known of an activation without running it here."""
        spread = position.spread.get(activation.id)
        if spread is not None:
            return spread.outcome
        kept = position.results.get(activation.id)
        if kept is not None and kept.result is not None:
            failure = unfinished_failure(kept)
            if failure is not None:
                return Failed(failure=failure)
            return decode_result(self.nodes.blueprint.fold, kept.result, kept.id)
        if position.open_waits(activation.id):
            return Asked(interrupts=(), is_open=True)
        return None

    def _outcome(self, known: Outcome | None, ran: Ran | None) -> Outcome:
        if known is not None:
            return known
        return ran.outcome if ran is not None else NotRun()

    def _run_sequential(
        self,
        position: Position,
        due: dict[str, Outcome | None],
        flushed: set[str],
    ) -> dict[str, Ran]:
        """One after the other, up to the first that fails or asks.

        Behind it only those run whose question was answered: the answer was given for
        this superstep.
        """
        ran: dict[str, Ran] = {}
        stopped = False
        for activation in position.pending:
            known = due[activation.id]
            if known is not None:
                stopped = stopped or not isinstance(known, Completed)
                continue
            if stopped and not position.answered_waits(activation.id):
                continue
            if self.nodes.stop.is_set():
                break
            self._announce(position, activation, None)
            try:
                result = ran[activation.id] = self.nodes.run(position, activation)
            except ChildOfOtherCode:
                self._keep(self._finished(ran.values()))
                raise
            except RunCancelledError:
                break
            if result.is_recorded:
                flushed.add(result.attempt.id)
            stopped = stopped or not isinstance(result.outcome, Completed)
        return ran

    def _finished(self, ran: Iterable[Ran]) -> list[AttemptRecord]:
        """The attempts that are stored before their superstep ends."""
        ended = [r for r in ran if isinstance(r.outcome, (Completed, Failed))]
        return [
            stored_attempt(self.nodes.blueprint.fold, r)
            for r in ended
            if not r.is_recorded
        ]

    def _keep(self, finished: Sequence[AttemptRecord]) -> None:
        """Store what finished in a pass that ends before its superstep does."""
        if finished:
            self.flush(finished)

    def _announce(
        self, position: Position, activation: Activation, fork: Fork | None
    ) -> None:
        step, node, log = position.step + 1, activation.node, self.nodes.log
        log.tell("task.scheduled", step=step, node=node)
        log.tell("node.started", step=step, node=node)
        if fork is not None:
            log.tell("context.forked", step=step, node=node, fork=fork.index)

    def _run_concurrent(
        self, position: Position, to_run: list[Activation], flushed: set[str]
    ) -> dict[str, Ran]:
        """Side by side; no sibling is stopped when one fails."""
        places = {a.id: index for index, a in enumerate(position.pending)}
        forks = {a.id: Fork(index=places[a.id], node=a.node) for a in to_run}
        for activation in to_run:
            self._announce(position, activation, forks[activation.id])
        with ThreadPoolExecutor(self._thread_count(to_run)) as pool:
            futures = {
                pool.submit(self._in_thread(position, a, forks[a.id])): a
                for a in to_run
            }
            return self._collect(futures, flushed)

    def _thread_count(self, to_run: list[Activation]) -> int:
        nodes = self.nodes.blueprint.nodes
        any_sync = any(not nodes[a.node].is_async for a in to_run if a.node in nodes)
        most = _MOST_SYNC_THREADS if any_sync else _MOST_THREADS
        return min(len(to_run), self.max_concurrency or most)

    def _in_thread(
        self, position: Position, activation: Activation, fork: Fork
    ) -> Callable[[], Ran]:
        context = contextvars.copy_context()

        def work() -> Ran:
            try:
                return self.nodes.run(position, activation, fork)
            finally:
                self.nodes.store.thread_finished()

        return lambda: context.run(work)

    def _collect(
        self, futures: dict[Future[Ran], Activation], flushed: set[str]
    ) -> dict[str, Ran]:
        """Wait for all, writing what waits for a sibling. See Note [Flushing]."""
        ran: dict[str, Ran] = {}
        waiting: list[AttemptRecord] = []
        stops: list[ChildOfOtherCode] = []
        running = set(futures)
        while running:
            done, running = wait(
                running,
                timeout=FLUSH_WINDOW_SECONDS if waiting else None,
                return_when=FIRST_COMPLETED,
            )
            for future in done:
                try:
                    result = future.result()
                except ChildOfOtherCode as stop:
                    stops.append(stop)
                    continue
                except RunCancelledError:
                    continue
                ran[futures[future].id] = result
                if result.is_recorded:
                    flushed.add(result.attempt.id)
                waiting += self._finished([result])
            if waiting and running and not done:
                self.flush(waiting)
                flushed.update(attempt.id for attempt in waiting)
                waiting = []
        if stops:
            self._keep(waiting)
            raise stops[0]
        return ran
