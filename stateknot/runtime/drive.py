"""The way of a run: one worker's or caller's pass over it, under one fence.

`Drive.run` is the loop that ARCHITECTURE tells: it loads where the run stands and then,
superstep by superstep, checks limits, runs handlers, lets the kernel decide, and
commits the boundary. It stops when the run ends, pauses or fails, when its quantum is
used, or when the lease is lost. It writes through `Committer` only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    MissingNodeError,
    RunError,
    StateError,
)
from stateknot.kernel.cancelling import without_ends
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.routing import with_ids
from stateknot.kernel.superstep import (
    find_deferred,
    find_unsatisfied_join,
    plan_superstep,
)
from stateknot.kernel.usage import CLOSING
from stateknot.kernel.vocabulary import UNSET, CheckpointSource, RunStatus
from stateknot.runtime.boundary import draft_boundary, draft_deferral, status_behind
from stateknot.runtime.budget import Budget, Quantum
from stateknot.runtime.child_stops import ChildOfOtherCode
from stateknot.runtime.closing import conclude
from stateknot.runtime.events import EventLog
from stateknot.runtime.loop_thread import LoopThread
from stateknot.runtime.node_runner import NodeRunner
from stateknot.runtime.once import AtMostOnce, Together
from stateknot.runtime.position import Position, load_position
from stateknot.runtime.step_runner import StepResult, StepRunner
from stateknot.runtime.telling import SAVED, boundary_events, tell_outcomes

if TYPE_CHECKING:
    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.records import Fence, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.kernel.superstep import SuperstepPlan
    from stateknot.kernel.writes import Boundary, CheckpointDraft
    from stateknot.runtime.children import DriveChild
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.durability import Committer
    from stateknot.runtime.execution import ChildRun
    from stateknot.runtime.spread_steps import Spreader
    from stateknot.runtime.stopping import Stop


@dataclass(slots=True, kw_only=True)
class DriveEnd:
    """How a drive ended. `failure` or `error` say why a run failed; a drive that merely
    yielded has neither, and status `running`."""

    status: RunStatus
    position: Position | None
    visited: list[str] = field(default_factory=list)
    steps: int = 0
    failure: NodeFailure | None = None
    error: Exception | None = None
    output: Any = None
    child_runs: list[ChildRun] = field(default_factory=list)


class Drive:
    """One pass over a run. Make it with a fence that `claim` or `admit` gave."""

    def __init__(
        self,
        blueprint: Blueprint,
        config: RunConfig,
        store: Store,
        fence: Fence,
        committer: Committer,
        drive_child: DriveChild,
        spreader: Spreader | None = None,
    ) -> None:
        self.spreader = spreader
        self.blueprint, self.config, self.store = blueprint, config, store
        self.fence, self.committer = fence, committer
        self.log: EventLog = committer.log
        self.stop: Stop = committer.stop
        self.visited: list[str] = []
        self.drive_child = drive_child
        self.child_runs: list[ChildRun] = []
        self.steps = 0
        self.budget = Budget(blueprint, config)

    def run(
        self,
        run: RunRecord,
        quantum: Quantum | None = None,
        position: Position | None = None,
    ) -> DriveEnd:
        """Drive `run` until it rests or the quantum is used.

        `position` is where it stands, if that is known; otherwise it is read.
        Raises LeaseError when another holder took it: nothing more was written.
        """
        loop = LoopThread(self.store.thread_finished, self.stop)
        steps = self.step_runner(loop)
        try:
            if position is None:
                loaded = self._load(run)
                if isinstance(loaded, DriveEnd):
                    return loaded
                position = loaded
                if self.spreader is not None:
                    self.spreader.load(position)
            waiting = self._wait_for_timers(position)
            if waiting is not None:
                return waiting
            while True:
                if self.stop.is_set():
                    return self._cancel(position)
                limit = self._limit(position)
                if limit is not None:
                    return self._stop(position, limit)
                end = self._superstep(position, steps)
                if end is not None:
                    return end
                if self.budget.is_used(quantum, self.steps):
                    self.committer.drain()
                    if not self.stop.is_set():
                        return self._end(RunStatus.RUNNING, position)
        finally:
            loop.close()

    def _limit(self, position: Position) -> RunError | None:
        """The limit that forbids the next superstep; one that was spread has begun."""
        if not position.pending or position.spread:
            return None
        return self.budget.exceeded(position)

    def step_runner(self, loop: LoopThread) -> StepRunner:
        """What runs the activations of this drive, under its fence."""
        nodes = NodeRunner(
            blueprint=self.blueprint,
            config=self.config,
            log=self.log,
            loop=loop,
            on_attempt=lambda attempt: self.committer.record([attempt]),
            stop=self.stop,
            store=self.store,
            drive_child=self.drive_child,
            together=Together(
                fold=self.blueprint.fold, record_with=self.committer.record_with
            ),
            at_most_once=AtMostOnce(
                fold=self.blueprint.fold,
                record_now=self.committer.record_now,
                stop=self.stop,
            ),
        )
        return StepRunner(
            nodes=nodes,
            is_parallel=self.config.is_parallel or self.blueprint.is_parallel,
            max_concurrency=self.config.max_concurrency
            or self.blueprint.max_concurrency,
            flush=self.committer.record,
        )

    def _load(self, run: RunRecord) -> Position | DriveEnd:
        """Where the run stands, or the end of a run that cannot be read or followed."""
        try:
            position = load_position(self.store, self.blueprint, run)
            self._require_nodes(position)
            if self.config.policy.max_visits_per_node is not None:
                visits = self.store.list_visits(run.id)
                self.budget.load_visits(visits, run.lineage)
        except (StateError, MissingNodeError) as error:
            return self._stop(None, error)
        return position

    def _require_nodes(self, position: Position) -> None:
        for activation in position.pending:
            if activation.node not in self.blueprint.nodes:
                raise MissingNodeError(
                    f"node {activation.node!r} is due on thread "
                    f"{position.run.thread_id!r} but is not in graph "
                    f"{self.blueprint.graph_id!r}"
                )

    def _superstep(self, position: Position, steps: StepRunner) -> DriveEnd | None:
        """Run what is due, decide, commit. The end, if this superstep was the last."""
        step = position.step + 1
        position.pending = with_ids(position.pending, step)
        active = [activation.node for activation in position.pending]
        if not position.spread:
            self.log.tell("step.started", step=step, active=active)
        if self._has_spread(position, steps):
            return self._end(RunStatus.RUNNING, position)
        try:
            result = steps.run(position)
        except ChildOfOtherCode:
            # The run goes on elsewhere, from what was done here.
            self.committer.drain()
            raise
        if result.is_broken_off:
            return self._cancel(position, result)
        deferred = find_deferred(result.outcomes)
        if deferred is not None:
            return self._defer(deferred, result, position)
        plan = plan_superstep(
            self.blueprint,
            position.state,
            result.outcomes,
            joins=position.joins,
            step=step,
        )
        self.visited += tell_outcomes(self.log, plan, step)
        self.child_runs += result.child_runs
        return self._commit(plan, result, position)

    def _cancel(self, position: Position, result: StepResult | None = None) -> DriveEnd:
        """End a run that is to be cancelled; the last boundary stands.

        What was finished of a superstep that was broken off is kept beside it. Raises
        LeaseError where the lease was lost instead.
        """
        if not self.stop.is_cancelled:
            self.stop.require_going()
        kept = result.finished() if result else []
        if kept:
            self.committer.record(kept)
        self.committer.finish(RunStatus.CANCELLED, None)
        return self._end(RunStatus.CANCELLED, position)

    def _has_spread(self, position: Position, steps: StepRunner) -> bool:
        """Hand the step's activations to other workers, if that is what they are for.

        Whatever the durability, what came before is stored first: they read it.
        """
        if self.spreader is None or position.spread:
            return False
        due = steps.to_spread(position)
        if not due:
            return False
        self.committer.drain()
        self.spreader.spread(
            self.fence,
            due,
            at_once=steps.max_concurrency,
            events=self.log.take(),
            active_seconds=self.budget.take_active(),
        )
        return True

    def _defer(
        self, delay_seconds: float, result: StepResult, position: Position
    ) -> DriveEnd:
        """Put the superstep off until its retry is due; no process sleeps for it."""
        self.log.tell("run.deferred", step=position.step + 1, delay=delay_seconds)
        deferral = draft_deferral(
            delay_seconds, result, position, self.config, self.blueprint.fold
        )
        self.committer.defer(
            replace(
                deferral,
                events=self.log.take(),
                active_seconds=self.budget.take_active(),
            )
        )
        return self._end(RunStatus.WAITING, position)

    def _wait_for_timers(self, position: Position) -> DriveEnd | None:
        """Wait on if a timer that was set earlier is not due yet."""
        dues = [wait.due_at for wait in position.open_timers() if wait.due_at]
        if not dues:
            return None
        left = (max(dues) - self.store.now()).total_seconds()
        if left <= 0:
            return None
        nothing = StepResult(outcomes=[])
        return self._defer(left, nothing, position)

    def _commit(
        self, plan: SuperstepPlan, result: StepResult, position: Position
    ) -> DriveEnd | None:
        failure = plan.failure or find_unsatisfied_join(self.blueprint, plan)
        if failure is not plan.failure:
            plan = replace(plan, failure=failure)
        is_loop = plan.source is CheckpointSource.LOOP and bool(plan.done)
        status = status_behind(plan, failure)
        steps = position.steps + is_loop
        drafted = draft_boundary(plan, result, position, self.config, self.blueprint)
        output = next((o.output for _, o in plan.done if o.output is not UNSET), None)
        told = boundary_events(
            plan,
            run_id=position.run.id,
            checkpoint_id=drafted.draft.id,
            step=position.step + 1,
            steps=steps,
            status=status,
            failure=failure,
        )
        boundary = drafted.boundary(
            status=status,
            steps=steps,
            active_seconds=self.budget.take_active(),
            events=(*self.log.take(), *told),
            failure=failure,
            output=output,
        )
        boundary = replace(boundary, ends_spread=bool(position.spread))
        self._write(boundary, failure)
        for event in without_ends(told) if self.stop.is_cancelled else told:
            if event.kind != SAVED:
                self.log.pass_on(event, live_only=True)
        self.steps += is_loop
        self._advance(position, plan, drafted.draft, steps)
        if status is RunStatus.RUNNING:
            return None
        return self._end(status, position, failure=failure, output=output)

    def _write(self, boundary: Boundary, failure: NodeFailure | None) -> None:
        """Commit; a write that fails does not hide that a node failed."""
        try:
            self.committer.commit(boundary)
        except Exception as error:
            if failure is not None:
                what = f"{failure.error_type}: {failure.message}"
                error.add_note(f"node {failure.node_id!r} had failed too: {what}")
            raise

    def _advance(
        self,
        position: Position,
        plan: SuperstepPlan,
        draft: CheckpointDraft,
        steps: int,
    ) -> None:
        done = {activation.id for activation, _ in plan.done}
        position.head_id = draft.id
        position.sequence += 1
        position.step += 1
        position.steps = steps
        position.state = plan.state
        position.pending = draft.pending
        position.joins = plan.joins
        position.tries, position.lost = {}, {}
        position.spread, position.spread_runs = {}, []
        position.results = {k: v for k, v in position.results.items() if k not in done}
        position.waits = {k: v for k, v in position.waits.items() if k not in done}

    def _stop(self, position: Position | None, error: Exception) -> DriveEnd:
        """End the drive without a checkpoint: the last boundary stands."""
        failure = NodeFailure.of(
            error,
            node_id=getattr(error, "node_id", ""),
            activation_id="",
            kind="limit" if isinstance(error, RunError) else "state",
            code=getattr(error, "code", None),
            attempts=0,
        )
        self.committer.drain()
        run = position.run if position else None
        status, recorded = conclude(self.store, run, error, failure)
        if status is RunStatus.CLOSING:
            self.log.tell(CLOSING, failure=failure.to_json())
        else:
            text = str(error)[:500]
            self.log.tell("run.failed", run_id=self.fence.run_id, error=text)
        self.committer.finish(status, recorded)
        return self._end(status, position, error=error)

    def _end(
        self,
        status: RunStatus,
        position: Position | None,
        *,
        failure: NodeFailure | None = None,
        error: Exception | None = None,
        output: Any = None,
    ) -> DriveEnd:
        if self.stop.is_cancelled:
            status, failure, error, output = RunStatus.CANCELLED, None, None, None
        return DriveEnd(
            status=status,
            position=position,
            visited=self.visited,
            steps=self.steps,
            failure=failure,
            error=error,
            output=output,
            child_runs=self.child_runs,
        )
