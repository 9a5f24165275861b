"""Runs inside a run: the graphs that one activation calls.

Each call has a namespace of its own, made of the activation, so no two share one. A
call that finished is remembered; one that paused, failed or waits goes on from its own
records when the activation runs again. Read `child_stops.py` for how a child that asks
or waits ends the handler that called it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    LeaseError,
    RevisionMismatchError,
    RunCancelledError,
    RunError,
)
from stateknot.kernel.commands import Command, Interrupt, ResumeTarget
from stateknot.kernel.records import Fence
from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.admission import draft_admission, find_standing, reopen
from stateknot.runtime.child_records import (
    INPUT,
    carried_state,
    check_length,
    input_values,
    require_same_graph,
)
from stateknot.runtime.child_revisions import pinned_child
from stateknot.runtime.child_stops import (
    ChildDeferred,
    ChildOfOtherCode,
    ChildPaused,
    passed_on,
)
from stateknot.runtime.config import own_frame
from stateknot.runtime.execution import ChildRun, GraphExecution, execution_of
from stateknot.runtime.position import fresh_position, load_position
from stateknot.runtime.told_runs import ToldRuns

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stateknot.kernel.commands import Interrupt
    from stateknot.kernel.records import RunRecord, WaitRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.drive import DriveEnd
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.position import Position

DriveChild = Callable[..., "DriveEnd"]
"""`drive_claimed`, which a drive is given since it cannot import who makes it."""


current_children: contextvars.ContextVar[Children | None] = contextvars.ContextVar(
    "stateknot_children", default=None
)
"""The calls of the activation whose handler runs in this context."""


@dataclass(slots=True, kw_only=True)
class Children:
    """The child runs of one activation; `told` collects those of its superstep.

    `hold` renews the parent's lease and raises LeaseError when it was lost: only who
    holds the parent may make or take its children. `note` tells an event of the parent.
    Calls of an async handler come from threads that nobody else frees: `is_elsewhere`.
    A node that must not run twice calls none (`is_refused`): a child that pauses runs
    it again, and a child's boundaries inside its transaction would vanish with that.
    """

    store: Store
    config: RunConfig
    run: RunRecord
    lineage: int
    node_id: str
    activation_id: str
    answers: tuple[WaitRecord, ...]
    drive: DriveChild
    hold: Callable[[], None]
    note: Callable[..., None]
    is_elsewhere: bool
    is_refused: bool = False
    told: ToldRuns = field(default_factory=ToldRuns)
    _calls: int = 0
    _given: dict[str, BaseModel] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(
        self,
        graph: CompiledGraph,
        state: Any,
        *,
        segment: str = "",
        carry: bool = False,
    ) -> GraphExecution:
        """Run `graph` from `state` to its end, or go on with it.

        Raises what the child's run raises; ends the handler when it pauses or waits.
        """
        if self.is_refused:
            raise RunError(
                f"node {self.node_id!r} is transactional or at-most-once and runs "
                f"graph {graph.graph_id!r}; call it from an ordinary node, and let "
                "nodes of that graph be of that kind"
            )
        try:
            return self._called(graph, state, segment, carry)
        finally:
            if self.is_elsewhere:
                self.store.thread_finished()

    def _called(
        self, graph: CompiledGraph, state: Any, segment: str, carry: bool
    ) -> GraphExecution:
        child = self._as_child(graph, segment or self._next_segment())
        self._check_depth(child)
        run = self.store.find_thread_run(self.run.thread_id, child.config.namespace)
        if run is None:
            if carry:
                codec = child.blueprint.fold.codec
                state = carried_state(self.store, self.run, self.node_id, codec, state)
            run, fence, position = self._admit(child, state)
        else:
            require_same_graph(run, child.graph_id)
            if run.status is RunStatus.COMPLETED:
                return self._remembered(child, run)
            child = self._pinned(child, run)
            run, fence = self._take_up(child, run)
            position = None
        self._note("subgraph.started", run)
        execution = self._driven(child, run, fence, position)
        self._note("subgraph.completed", run)
        return execution

    def given_to(self, graph: CompiledGraph, execution: GraphExecution) -> BaseModel:
        """The state that a call's run began with, `memory="carry"` included."""
        given = self._given.get(execution.run_id)
        run = self.store.find_run(execution.run_id) if given is None else None
        if given is not None or run is None:
            return given or execution.state
        values = input_values(self.store, run)
        return graph.blueprint.fold.codec.load(values)

    def _pinned(self, child: CompiledGraph, run: RunRecord) -> CompiledGraph:
        """The code of the child's revision; ends the handler when there is none."""
        try:
            return pinned_child(child, run)
        except RevisionMismatchError as error:
            raise ChildOfOtherCode(error) from None

    def segment(self) -> str:
        """The namespace segment of a node that runs one graph: its activation."""
        if self.lineage == 0:
            return self.activation_id
        return f"{self.activation_id}@{self.lineage}"

    def _note(self, kind: str, run: RunRecord) -> None:
        self.note(
            kind,
            node=self.node_id,
            graph=run.graph_id,
            run_id=run.id,
            namespace=list(run.namespace),
        )

    def _next_segment(self) -> str:
        with self._lock:
            self._calls += 1
            return f"{self.segment()}#{self._calls}"

    def _as_child(self, graph: CompiledGraph, segment: str) -> CompiledGraph:
        own = graph.config
        frame = own_frame(self.run, self.config)
        namespace = (*self.run.namespace, *own.namespace, segment)
        check_length(namespace)
        config = replace(
            own,
            checkpointer=self.store,
            namespace=namespace,
            frames=(*self.config.frames, frame),
            hosting_node=self.node_id,
            durability=self.config.durability,
            clock=self.config.clock,
            longest_sleep_seconds=self.config.longest_sleep_seconds,
        )
        return graph.configured(config)

    def _check_depth(self, child: CompiledGraph) -> None:
        child.config.policy.require_depth(child.config.frames)

    def _admit(
        self, child: CompiledGraph, state: Any
    ) -> tuple[RunRecord, Fence, Position | None]:
        admission = draft_admission(
            child.blueprint,
            child.definition,
            child.config,
            state,
            thread_id=self.run.thread_id,
            actor=self.run.actor,
        )
        metadata = {INPUT: admission.checkpoint_id}
        admission = replace(admission, metadata=metadata)
        holder = self._holder()
        with self.store.atomic():
            self.hold()
            run = self.store.admit(admission, holder)
        position = fresh_position(child.blueprint, run, admission)
        self._given[run.id] = position.state
        return run, Fence(run_id=run.id, epoch=run.epoch, holder=holder), position

    def _holder(self) -> str:
        return f"child-of-{self.run.id}-{self.config.clock.new_id()}"

    def _take_up(self, child: CompiledGraph, run: RunRecord) -> tuple[RunRecord, Fence]:
        """Go on with a child that did not come to its end, from its own records."""
        with self.store.atomic():
            self.hold()
            if run.status in (RunStatus.INTERRUPTED, RunStatus.FAILED):
                self._reopen(child, run)
            elif run.status is RunStatus.WAITING:
                self._require_due(run)
            # The parent's fence covers its children: whoever drove the child before
            # did so for a parent that was lost.
            fence = self.store.claim(run.id, self._holder(), supersede=True)
            claimed = self.store.find_run(run.id)
        if fence is None or claimed is None:
            raise RunError(f"child run {run.id} ({run.status}) cannot go on")
        return claimed, fence

    def _reopen(self, child: CompiledGraph, run: RunRecord) -> None:
        thread_id, target = self.run.thread_id, ResumeTarget.latest()
        standing = find_standing(self.store, thread_id, target, child.config)
        given = {wait.public_id: wait.answer for wait in self.answers}
        asked = {wait.public_id for wait in standing.questions}
        answers = {key: value for key, value in given.items() if key in asked}
        if run.status is RunStatus.INTERRUPTED and asked and not answers:
            raise ChildPaused(self._passed_on(standing.questions))
        command = Command(answers=answers)
        reopen(self.store, standing, command, child.config, digest=child.digest)

    def _passed_on(self, waits: Iterable[WaitRecord]) -> tuple[Interrupt, ...]:
        now = self.store.now()
        return tuple(passed_on(wait, now) for wait in waits)

    def _require_due(self, run: RunRecord) -> None:
        if run.wake_at is None:
            return
        left = (run.wake_at - self.store.now()).total_seconds()
        if left > 0:
            raise ChildDeferred(left)

    def _driven(
        self,
        child: CompiledGraph,
        run: RunRecord,
        fence: Fence,
        position: Position | None,
    ) -> GraphExecution:
        end = self.drive(child, self.store, run, fence, position=position)
        waits = self._open_waits(end)
        execution = execution_of(
            run,
            end.position,
            status=end.status,
            waits=waits,
            steps=end.steps,
            visited=end.visited,
            child_runs=end.child_runs,
            output=end.output,
        )
        self._raise_failure(end, run, execution)
        if end.status is RunStatus.CANCELLED:
            # With its parent, which hears of it here and ends the handler.
            self.hold()
            raise RunCancelledError(run.id)
        if end.status is RunStatus.COMPLETED:
            self._tell(child, execution)
            return execution
        if end.status is RunStatus.INTERRUPTED:
            self._tell(child, execution)
            raise ChildPaused(self._passed_on(waits))
        waiting = self.store.find_run(run.id)
        if waiting is not None and waiting.status is RunStatus.WAITING:
            self._require_due(waiting)
            raise ChildDeferred(0.0)
        raise LeaseError(run.id, fence.epoch)

    def _raise_failure(
        self, end: DriveEnd, run: RunRecord, execution: GraphExecution
    ) -> None:
        if end.error is not None:
            raise end.error
        if end.failure is not None:
            raise end.failure.error(
                run_id=run.id,
                thread_id=run.thread_id,
                checkpoint_id=execution.checkpoint_id,
                execution=execution,
            )

    def _open_waits(self, end: DriveEnd) -> list[WaitRecord]:
        if end.status is not RunStatus.INTERRUPTED or end.position is None:
            return []
        end.position.reload_waits(self.store)
        return end.position.all_open()

    def _remembered(self, child: CompiledGraph, run: RunRecord) -> GraphExecution:
        """The end of a call that finished in an earlier attempt of the handler."""
        position = load_position(self.store, child.blueprint, run)
        execution = execution_of(
            run, position, status=run.status, steps=run.steps, output=run.output
        )
        self._tell(child, execution)
        return execution

    def _tell(self, child: CompiledGraph, execution: GraphExecution) -> None:
        self.told.tell(
            ChildRun(
                node=self.node_id,
                graph_id=child.graph_id,
                run_id=execution.run_id,
                root_run_id=execution.root_run_id,
                namespace=child.config.namespace,
                checkpoint_id=execution.checkpoint_id,
            )
        )
