"""Running a graph in memory until it rests: the clock moves, answers come by script.

The same executor and the same supersteps as on a worker, over the memory store. What a
worker would wait for (timers, retries that are far off, questions that expire) is
waited for by moving the clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import RunError
from stateknot.kernel.commands import Command
from stateknot.kernel.vocabulary import RunStatus, WaitStatus
from stateknot.runtime.config import LONGEST_SLEEP_SECONDS
from stateknot.runtime.execution import execution_of
from stateknot.runtime.position import load_position
from stateknot.testing.answers import Script
from stateknot.testing.clock import FakeClock
from stateknot.testing.points import CrashingStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from stateknot.kernel.commands import GraphInput
    from stateknot.runtime.execution import GraphExecution, StateSnapshot
    from stateknot.runtime.graph import CompiledGraph

THREAD = "test"
_MOST_ROUNDS = 1_000


class InMemory:
    """One graph on one thread, in memory, under a clock that stands still.

    `answers` are scripted by `node.key`, key or node id; a question without one stays
    open. With `advance=False` the clock is left to the test. `crash_at` is one of
    `CRASH_POINTS`: the run raises `Crash` there the `crash_on`-th time, and `recover`
    goes on as the next process would.
    """

    def __init__(
        self,
        graph: CompiledGraph,
        *,
        answers: Mapping[str, Any] | None = None,
        advance: bool = True,
        clock: FakeClock | None = None,
        crash_at: str | None = None,
        crash_on: int = 1,
    ) -> None:
        self.clock = clock or FakeClock()
        self.store = CrashingStore(self.clock.now, crash_at, crash_on)
        config = replace(
            graph.config,
            checkpointer=self.store,
            clock=self.clock,
            longest_sleep_seconds=LONGEST_SLEEP_SECONDS,
        )
        self.graph = graph.configured(config)
        self._script = Script(answers or {})
        self._advances = advance

    @property
    def unused_answers(self) -> set[str]:
        """The names of scripted answers that nothing asked for."""
        return set(self._script.unused)

    @property
    def state(self) -> Any:
        """The newest state, None before the first run."""
        snapshot = self.graph.get_state(THREAD)
        return snapshot.values if snapshot else None

    def history(self) -> list[StateSnapshot]:
        """Every boundary from the input on, oldest first."""
        return list(reversed(self.graph.get_state_history(THREAD)))

    def run(
        self, state: Any = None, inputs: Sequence[GraphInput] | None = None
    ) -> GraphExecution:
        """Start, and go on until the run ends or nothing scripted lets it go on.

        Raises what the graph's own run raises, and Crash at the chosen point.
        """
        given = {} if state is None else state
        if inputs is None:
            execution = self.graph.run_with_thread(THREAD, given)
        else:
            execution = self.graph.run_with_thread_inputs(THREAD, given, inputs)
        return self._to_rest(execution)

    def resume(self, command: Command | None = None) -> GraphExecution:
        """Answer by hand, and go on until the run rests."""
        return self._to_rest(self.graph.resume(THREAD, command))

    def retry(self, *, rerun_unknown: bool = False) -> GraphExecution:
        """Run again what failed, and go on until the run rests.

        With `rerun_unknown` also at-most-once nodes that were lost.
        """
        again = self.graph.retry(THREAD, rerun_unknown=rerun_unknown)
        return self._to_rest(again)

    def recover(self) -> GraphExecution:
        """Go on behind a crash as another process would once the lease has expired."""
        self.store.recover()
        run = self.store.find_thread_run(THREAD)
        if run is None:
            raise RunError("the crash came before anything was stored; run again")
        if run.status is RunStatus.PENDING:
            return self.resume()
        position = load_position(self.store, self.graph.blueprint, run)
        waits = position.all_open()
        stood = execution_of(
            run, position, status=run.status, waits=waits, steps=0, output=run.output
        )
        return self._to_rest(stood)

    def _to_rest(self, execution: GraphExecution) -> GraphExecution:
        for _ in range(_MOST_ROUNDS):
            command = self._next_command(execution)
            if command is None:
                return execution
            execution = self.graph.resume(THREAD, command)
        raise RunError(
            f"the run did not rest within {_MOST_ROUNDS} answers and waits; does a "
            "node ask or wait for ever?"
        )

    def _next_command(self, execution: GraphExecution) -> Command | None:
        """What lets a resting run go on: an answer, or time; None if nothing."""
        if execution.status is RunStatus.INTERRUPTED:
            answers = self._script.pair(execution.interrupts)
            if answers:
                return Command(answers=answers)
        if not self._advances:
            return None
        due = self._due(execution)
        if due is None:
            return None
        self.clock.advance_to(due)
        return Command()

    def _due(self, execution: GraphExecution) -> datetime | None:
        """When the run goes on by itself: its wake-up, or the next deadline."""
        if execution.status is RunStatus.WAITING:
            run = self.store.find_run(execution.run_id)
            return run.wake_at if run else None
        if execution.status is not RunStatus.INTERRUPTED:
            return None
        waits = self.store.list_waits(THREAD)
        dues = [w.due_at for w in waits if w.due_at and w.status is WaitStatus.OPEN]
        return min(dues, default=None)


def run_in_memory(
    graph: CompiledGraph,
    state: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    inputs: Sequence[GraphInput] | None = None,
) -> GraphExecution:
    """Run `graph` in memory to its rest. See `InMemory` for what `answers` may be."""
    return InMemory(graph, answers=answers).run(state, inputs)
