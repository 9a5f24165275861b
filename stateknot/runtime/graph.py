"""The public graph: `GraphBuilder` for its author, `CompiledGraph` for who runs it.

A `CompiledGraph` pairs a blueprint with a `RunConfig` and drives runs in the caller's
process, by the same `Drive` that workers use. `thread_api.py` holds its thread
operations; a graph that runs inside a node of another is a child run (`children.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    LeaseError,
    NodeFailedError,
    ResumeError,
    RunCancelledError,
)
from stateknot.kernel.blueprint_definition import define
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.commands import Command, ResumeTarget
from stateknot.kernel.composition import GraphComposition
from stateknot.kernel.records import Fence
from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.admission import (
    answer_due,
    draft_admission,
    find_standing,
    reopen,
)
from stateknot.runtime.child_revisions import require_child_code
from stateknot.runtime.child_stops import ChildOfOtherCode
from stateknot.runtime.children import current_children
from stateknot.runtime.composed import compose, from_definition
from stateknot.runtime.config import RunConfig
from stateknot.runtime.driving import drive_claimed
from stateknot.runtime.events import EventLog
from stateknot.runtime.execution import GraphExecution, execution_of
from stateknot.runtime.identity import current_owner
from stateknot.runtime.loop_thread import require_no_loop
from stateknot.runtime.memory import MemoryCheckpointer
from stateknot.runtime.position import fresh_position
from stateknot.runtime.thread_api import ThreadApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from pydantic import BaseModel

    from stateknot.kernel.commands import GraphInput
    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.drive import DriveEnd
    from stateknot.runtime.position import Position


class GraphBuilder(BlueprintBuilder):
    """Collects the nodes and edges of a graph and compiles it."""

    def compile(self) -> CompiledGraph:
        """The graph, ready to run. Raises the first GraphError; all are in `issues`."""
        blueprint = self.blueprint()
        if self.calls:
            blueprint, composition = compose(blueprint, self.calls, current_owner())
            return CompiledGraph(blueprint, RunConfig(), composition)
        define(blueprint, current_owner())
        return CompiledGraph(blueprint, RunConfig())


class CompiledGraph(ThreadApi):
    """A graph and how it is run; every `with_*` returns a changed copy."""

    @classmethod
    def from_definition(
        cls,
        definition_or_composition: GraphDefinition | GraphComposition,
        *,
        handlers: Mapping[Any, Callable[..., Any]],
        state: type[BaseModel],
        update: type[BaseModel] | None = None,
        reducer: Callable[[Any, Any], Any] | None = None,
        graph_id: str | None = None,
    ) -> Self:
        """Make a closed definition or a composition runnable.

        `handlers` are keyed by node id; those of composed nodes by generated id, by the
        pair of call-site and template node, or by the template's node id. `graph_id` is
        what the graph is registered as: its name in the definition unless given.
        """
        given = definition_or_composition
        blueprint = from_definition(
            given,
            handlers=handlers,
            state=state,
            update=update,
            reducer=reducer,
            graph_id=graph_id,
        )
        composition = given if isinstance(given, GraphComposition) else None
        return cls(blueprint, RunConfig(), composition)

    def run(self, state: Any) -> GraphExecution:
        """Run from START in this process, on a new thread."""
        return self._start(state, None, None)

    def run_with_inputs(
        self, state: Any, inputs: Sequence[GraphInput]
    ) -> GraphExecution:
        """Run with `inputs` as the first activations, on a new thread."""
        return self._start(state, None, inputs)

    def run_with_thread(self, thread_id: str, state: Any) -> GraphExecution:
        """Run from START on `thread_id`.

        Raises ThreadBusyError while another run holds the thread, NodeFailedError when
        a node fails, and the limits' errors.
        """
        return self._start(state, thread_id, None)

    def run_with_thread_inputs(
        self, thread_id: str, state: Any, inputs: Sequence[GraphInput]
    ) -> GraphExecution:
        """Run with `inputs` as the first activations, on `thread_id`."""
        return self._start(state, thread_id, inputs)

    def resume(
        self,
        thread_id: str,
        command: Command | None = None,
        *,
        step_limit: int | None = None,
        reuse_results: bool = True,
    ) -> GraphExecution:
        """Go on from the thread's newest checkpoint, with the answers of `command`.

        `step_limit` replaces the run's limit; without `reuse_results` siblings that
        finished run again. Raises ResumeError when there is nothing to resume or an
        answer does not fit.
        """
        return self.resume_from(
            thread_id,
            ResumeTarget.latest(),
            command,
            step_limit=step_limit,
            reuse_results=reuse_results,
        )

    def retry(
        self,
        thread_id: str,
        *,
        step_limit: int | None = None,
        reuse_results: bool = True,
        rerun_unknown: bool = False,
    ) -> GraphExecution:
        """Go on from the thread's newest checkpoint: run again what failed.

        A run that waits for a timer or a retry is run now. An at-most-once node of
        which nobody can tell whether it acted runs again only with `rerun_unknown`.
        """
        return self._go_on(
            thread_id,
            ResumeTarget.latest(),
            Command(),
            step_limit,
            is_forced=True,
            reuse_results=reuse_results,
            rerun_unknown=rerun_unknown,
        )

    def resume_from(
        self,
        thread_id: str,
        target: ResumeTarget,
        command: Command | None = None,
        *,
        step_limit: int | None = None,
        reuse_results: bool = True,
    ) -> GraphExecution:
        """Go on from `target`; an older checkpoint begins a new branch."""
        return self._go_on(
            thread_id,
            target,
            command or Command(),
            step_limit,
            reuse_results=reuse_results,
        )

    def _go_on(
        self,
        thread_id: str,
        target: ResumeTarget,
        command: Command,
        step_limit: int | None,
        *,
        is_forced: bool = False,
        reuse_results: bool = True,
        rerun_unknown: bool = False,
    ) -> GraphExecution:
        store = self.config.checkpointer
        if store is None:
            raise ResumeError("no checkpointer configured; use with_checkpointer()")
        self._check_placement(store)
        log = EventLog(self.config.sinks)
        with store.atomic():
            answer_due(store, thread_id, self.config.namespace)
            standing = find_standing(store, thread_id, target, self.config)
            log.tell(
                "checkpoint.restored", live_only=True, checkpoint=standing.record.id
            )
            if standing.run.digest == self.digest:
                require_child_code(store, self, standing.record)
            reopen(
                store,
                standing,
                command,
                self.config,
                digest=self.digest,
                step_limit=step_limit,
                is_forced=is_forced,
                reuse_results=reuse_results,
                rerun_unknown=rerun_unknown,
            )
            fence = store.claim(standing.run.id, self._holder())
            run = store.find_run(standing.run.id)
        if fence is None or run is None:
            raise ResumeError(f"run {standing.run.id} was taken by a worker meanwhile")
        return self._drive(store, run, fence, log)

    def _start(
        self, state: Any, thread_id: str | None, inputs: Sequence[GraphInput] | None
    ) -> GraphExecution:
        parent = current_children.get()
        if parent is not None and thread_id is None and inputs is None:
            require_no_loop()
            return parent.call(self, state)
        store = self.config.checkpointer or MemoryCheckpointer()
        self._check_placement(store)
        admission = draft_admission(
            self.blueprint,
            self.definition,
            self.config,
            state,
            thread_id=thread_id,
            inputs=inputs,
        )
        holder = self._holder()
        with store.atomic():
            run = store.admit(admission, holder)
        fence = Fence(run_id=run.id, epoch=run.epoch, holder=holder)
        position = fresh_position(self.blueprint, run, admission)
        return self._drive(store, run, fence, EventLog(self.config.sinks), position)

    def _holder(self) -> str:
        return f"caller-{self.config.clock.new_id()}"

    def _check_placement(self, store: Store) -> None:
        """Refuse where driving would block an event loop or sit in a transaction."""
        require_no_loop()
        store.check_placement()

    def _drive(
        self,
        store: Store,
        run: RunRecord,
        fence: Fence,
        log: EventLog,
        position: Position | None = None,
    ) -> GraphExecution:
        try:
            end = drive_claimed(self, store, run, fence, log=log, position=position)
        except ChildOfOtherCode as stop:
            raise stop.refusal from None
        except LeaseError as error:
            self._raise_cancelled(store, run, error)
            raise
        if end.status is RunStatus.CANCELLED:
            self._raise_cancelled(store, run, None)
        execution = self._execution(end, run)
        self._raise_failure(end, run, execution)
        return execution

    def _raise_cancelled(
        self, store: Store, run: RunRecord, cause: LeaseError | None
    ) -> None:
        """Raise RunCancelledError if that is how the run ended."""
        ended = store.find_run(run.id)
        if ended is not None and ended.status is RunStatus.CANCELLED:
            raise RunCancelledError(run.id, ended.cancel_reason) from cause

    def _execution(self, end: DriveEnd, run: RunRecord) -> GraphExecution:
        position = end.position
        waits = position.all_open() if position else []
        if waits or end.status is RunStatus.INTERRUPTED:
            waits = self._open_after(end)
        return execution_of(
            run,
            position,
            status=end.status,
            waits=waits,
            steps=end.steps,
            visited=end.visited,
            child_runs=end.child_runs,
            output=end.output,
        )

    def _open_after(self, end: DriveEnd) -> list[Any]:
        """The open questions at a pause.

        Raises ResumeError where nothing keeps them.
        """
        if end.status is not RunStatus.INTERRUPTED or end.position is None:
            return []
        store = self.config.checkpointer
        if store is None:
            raise ResumeError(
                "a node asked a question, and without a checkpointer nobody could "
                "answer it; use with_checkpointer()"
            )
        end.position.reload_waits(store)
        return end.position.all_open()

    def _raise_failure(
        self, end: DriveEnd, run: RunRecord, execution: GraphExecution
    ) -> None:
        if end.error is not None:
            raise end.error
        if end.failure is None:
            return
        error: NodeFailedError = end.failure.error(
            run_id=run.id,
            thread_id=run.thread_id,
            checkpoint_id=execution.checkpoint_id,
            execution=execution,
        )
        raise error from end.failure.cause
