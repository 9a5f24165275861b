"""Runs inside a run: the graphs that one activation calls.

Each call has a namespace of its own, made of the activation, so no two share one. A
call that finished is remembered; one that paused, failed or waits goes on from its own
records when the activation runs again. See Note [How a child stops its parent].

Note [How a child stops its parent]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A child that asks a question cannot be waited for: the handler that called it is ended
in the middle, by an exception that is no `Exception`, so that a broad `except` in
author's code does not swallow the question. The node runner turns it into the parent's
own question (`Asked`) or wait (`Deferred`). When the answer comes, the handler runs
again from its start; calls that finished are remembered, the one that asked goes on.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import LeaseError, RunError
from stateknot.kernel.commands import Command, Interrupt, ResumeTarget
from stateknot.kernel.records import Fence
from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.admission import draft_admission, find_standing, reopen
from stateknot.runtime.config import own_frame
from stateknot.runtime.execution import ChildRun, GraphExecution, interrupt_of
from stateknot.runtime.position import load_position

if TYPE_CHECKING:
    from stateknot.kernel.records import RunRecord, WaitRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.drive import DriveEnd
    from stateknot.runtime.graph import CompiledGraph

DriveChild = Callable[["CompiledGraph", "Store", "RunRecord", Fence], "DriveEnd"]


class ChildPaused(BaseException):
    """Ends a handler whose child asked; carries the child's open questions."""

    def __init__(self, interrupts: tuple[Interrupt, ...]) -> None:
        super().__init__("a child graph waits for answers")
        self.interrupts = interrupts


class ChildDeferred(BaseException):
    """Ends a handler whose child waits; carries for how many seconds."""

    def __init__(self, delay_seconds: float) -> None:
        super().__init__("a child graph waits for a time")
        self.delay_seconds = delay_seconds


current_children: contextvars.ContextVar[Children | None] = contextvars.ContextVar(
    "stateknot_children", default=None
)
"""The calls of the activation whose handler runs in this context."""


@dataclass(slots=True, kw_only=True)
class Children:
    """The child runs of one activation. `told` collects them in completion order."""

    store: Store
    config: RunConfig
    run: RunRecord
    lineage: int
    node_id: str
    activation_id: str
    answers: tuple[WaitRecord, ...]
    drive: DriveChild
    told: list[ChildRun] = field(default_factory=list)
    _calls: int = 0
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
        child = self._as_child(graph, segment or self._next_segment())
        self._check_depth(child)
        run = self.store.find_thread_run(self.run.thread_id, child.config.namespace)
        if run is None:
            if carry:
                state = self._carried(child, state)
            run, fence = self._admit(child, state)
        elif run.status is RunStatus.COMPLETED:
            return self._remembered(child, run)
        else:
            run, fence = self._take_up(child, run)
        return self._driven(child, run, fence)

    def note_usage(self, run_id: str, usage: Mapping[str, float]) -> None:
        """Say what a child run used, in the records of its parent's boundary."""
        with self._lock:
            self.told[:] = [
                replace(child, usage=dict(usage)) if child.run_id == run_id else child
                for child in self.told
            ]

    def segment(self) -> str:
        """The namespace segment of a node that runs one graph: its activation."""
        if self.lineage == 0:
            return self.activation_id
        return f"{self.activation_id}@{self.lineage}"

    def _next_segment(self) -> str:
        with self._lock:
            self._calls += 1
            return f"{self.segment()}#{self._calls}"

    def _as_child(self, graph: CompiledGraph, segment: str) -> CompiledGraph:
        own = graph.config
        frame = own_frame(self.run, self.config)
        config = replace(
            own,
            checkpointer=self.store,
            namespace=(*self.run.namespace, *own.namespace, segment),
            frames=(*self.config.frames, frame),
            hosting_node=self.node_id,
            durability=self.config.durability,
            clock=self.config.clock,
            longest_sleep_seconds=self.config.longest_sleep_seconds,
        )
        return type(graph)(graph.blueprint, config)

    def _check_depth(self, child: CompiledGraph) -> None:
        child.config.policy.require_depth(child.config.frames)

    def _admit(self, child: CompiledGraph, state: Any) -> tuple[RunRecord, Fence]:
        admission = draft_admission(
            child.blueprint,
            child.definition,
            child.config,
            state,
            thread_id=self.run.thread_id,
            actor=self.run.actor,
        )
        holder = self._holder()
        with self.store.atomic():
            run = self.store.admit(admission, holder)
        return run, Fence(run_id=run.id, epoch=run.epoch, holder=holder)

    def _holder(self) -> str:
        return f"child-of-{self.run.id}-{self.config.clock.new_id()}"

    def _take_up(self, child: CompiledGraph, run: RunRecord) -> tuple[RunRecord, Fence]:
        """Go on with a child that did not come to its end, from its own records."""
        with self.store.atomic():
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
            raise ChildPaused(tuple(interrupt_of(w) for w in standing.questions))
        command = Command(answers=answers)
        reopen(self.store, standing, command, child.config, digest=child.digest)

    def _require_due(self, run: RunRecord) -> None:
        if run.wake_at is None:
            return
        left = (run.wake_at - self.store.now()).total_seconds()
        if left > 0:
            raise ChildDeferred(left)

    def _driven(
        self, child: CompiledGraph, run: RunRecord, fence: Fence
    ) -> GraphExecution:
        end = self.drive(child, self.store, run, fence)
        execution = self._execution(child, run, end)
        if end.error is not None:
            raise end.error
        if end.failure is not None:
            raise end.failure.error(
                run_id=run.id, thread_id=run.thread_id, execution=execution
            )
        if end.status is RunStatus.COMPLETED:
            self._tell(child, run)
            return execution
        if end.status is RunStatus.INTERRUPTED:
            self._tell(child, run)
            raise ChildPaused(tuple(execution.interrupts))
        waiting = self.store.find_run(run.id)
        if waiting is not None and waiting.status is RunStatus.WAITING:
            self._require_due(waiting)
            raise ChildDeferred(0.0)
        raise LeaseError(run.id, fence.epoch)

    def _execution(
        self, child: CompiledGraph, run: RunRecord, end: DriveEnd
    ) -> GraphExecution:
        position = end.position
        waits: list[WaitRecord] = []
        if end.status is RunStatus.INTERRUPTED and position is not None:
            position.reload_waits(self.store)
            waits = position.all_open()
        return GraphExecution(
            state=position.state if position else None,
            run_id=run.id,
            graph_id=run.graph_id,
            root_run_id=run.root_run_id,
            parent_run_id=self.run.id,
            status=end.status,
            thread_id=run.thread_id,
            checkpoint_id=position.head_id if position else run.head_id,
            steps=end.steps,
            visited=end.visited,
            interrupts=[interrupt_of(wait) for wait in waits],
            child_runs=end.child_runs,
            output=end.output,
        )

    def _remembered(self, child: CompiledGraph, run: RunRecord) -> GraphExecution:
        """The end of a call that finished in an earlier attempt of the handler."""
        position = load_position(self.store, child.blueprint, run)
        self._tell(child, run)
        return GraphExecution(
            state=position.state,
            run_id=run.id,
            graph_id=run.graph_id,
            root_run_id=run.root_run_id,
            parent_run_id=self.run.id,
            status=RunStatus.COMPLETED,
            thread_id=run.thread_id,
            checkpoint_id=position.head_id,
            steps=run.steps,
            output=run.output,
        )

    def _tell(self, child: CompiledGraph, run: RunRecord) -> None:
        with self._lock:
            self.told.append(
                ChildRun(
                    node=self.node_id,
                    graph_id=child.graph_id,
                    run_id=run.id,
                    root_run_id=run.root_run_id,
                    namespace=child.config.namespace,
                )
            )

    def _last_call(self) -> RunRecord | None:
        """The newest call of this node that came to its end."""
        ended = [
            run
            for run in self.store.list_children(self.run.id)
            if run.status is RunStatus.COMPLETED
            and _node_of(run.namespace[-1]) == self.node_id
        ]
        return ended[-1] if ended else None

    def _carried(self, child: CompiledGraph, state: Any) -> Any:
        """The last state of this node's calls, with what `state` sets on top."""
        last = self._last_call()
        if last is None:
            return state
        record = self.store.find_checkpoint(
            self.run.thread_id, last.head_id, last.namespace
        )
        if record is None:
            return state
        kept = child.blueprint.fold.codec.load(record.values)
        given = child.blueprint.fold.codec.validate(state)
        chosen = {name: getattr(given, name) for name in given.model_fields_set}
        return kept.model_copy(update=chosen)


def _node_of(segment: str) -> str:
    """The node in a namespace segment `step:index:node[@lineage][#call]`."""
    return segment.split(":", 2)[-1].split("@")[0].split("#")[0]
