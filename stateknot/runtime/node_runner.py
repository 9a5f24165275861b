"""Running one activation to its end: attempts, retries, timeout, answers.

A handler's exception ends here and goes on as a value (`Failed`). `SystemExit` and
`KeyboardInterrupt` are never swallowed. Handlers run outside any transaction, but for
those of transactional nodes (`once.py`). Read `step_runner.py` for who calls this, from
which thread.
"""

from __future__ import annotations

import contextvars
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stateknot.errors import LeaseError, NodeTimeoutError
from stateknot.kernel.commands import Command
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.handlers import is_async
from stateknot.kernel.likeness import copy_value
from stateknot.kernel.outcome import (
    Asked,
    Completed,
    Deferred,
    Failed,
    read_result,
)
from stateknot.kernel.records import Activation, AttemptRecord
from stateknot.kernel.retry import decide_retry
from stateknot.kernel.vocabulary import UNSET, AttemptStatus
from stateknot.runtime.calling import call, call_here
from stateknot.runtime.child_stops import ChildDeferred, ChildPaused, read_stop
from stateknot.runtime.children import Children, current_children
from stateknot.runtime.context import Fork, NodeContext, deliver_answers, emitter
from stateknot.runtime.ran import Ran
from stateknot.runtime.told_runs import ToldRuns

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from stateknot.kernel.blueprint import Blueprint, NodeSpec
    from stateknot.kernel.outcome import Outcome
    from stateknot.kernel.store import Store
    from stateknot.runtime.children import DriveChild
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.events import EventLog
    from stateknot.runtime.loop_thread import LoopThread
    from stateknot.runtime.once import AtMostOnce, Together
    from stateknot.runtime.position import Position
    from stateknot.runtime.stopping import Stop


@dataclass(slots=True, kw_only=True)
class NodeRunner:
    """Runs activations of one drive. `on_attempt` gets each attempt that is retried.

    `together` and `at_most_once` run the nodes that must not run twice.
    """

    blueprint: Blueprint
    config: RunConfig
    log: EventLog
    loop: LoopThread
    on_attempt: Callable[[AttemptRecord], None]
    stop: Stop
    store: Store
    drive_child: DriveChild
    together: Together
    at_most_once: AtMostOnce
    told: ToldRuns = field(default_factory=ToldRuns)

    def run(
        self, position: Position, activation: Activation, fork: Fork | None = None
    ) -> Ran:
        """Run `activation` of the position's superstep until it ends for good.

        Raises RunCancelledError or LeaseError when the drive must stop instead.
        """
        spec = self.blueprint.nodes[activation.node]
        context = self.context(position, activation, fork)
        while True:
            self.stop.require_going()
            self._hand_over(position, activation, context)
            started = self.config.clock.now()
            try:
                return self._tried(spec, position, activation, context, started)
            except LeaseError:
                raise
            except Exception as error:  # noqa: BLE001 - the boundary of author's code
                self.stop.require_whole(context.has_seen_end, error)
                # The decision first: a predicate that fails leaves its note there.
                # A try that was lost with its worker uses up no retry.
                tries = context.attempt - position.lost.get(activation.id, 0)
                retry = self._retry_delay(spec, tries, error)
                failed = self._failed(position, activation, context, started, error)
                if retry is None:
                    return self._handled(position, activation, context, failed, error)
                if self._is_long(retry):
                    return replace(failed, outcome=Deferred(delay_seconds=retry))
                context = self._schedule_retry(position, failed, context, retry)

    def _tried(
        self,
        spec: NodeSpec,
        position: Position,
        activation: Activation,
        context: NodeContext,
        started: datetime,
    ) -> Ran:
        """One attempt, stored in the way of its node's kind."""

        def end(outcome: Outcome) -> Ran:
            return self._ended(position, activation, context, started, outcome)

        if spec.at_most_once:
            start = self._attempt(position, activation, context, started)
            start.update(status=AttemptStatus.RUNNING, ended_at=None)
            return self.at_most_once.run(
                AttemptRecord(**start),
                call=lambda: self._call(spec, position, context),
                read=lambda result: self._read(spec.id, result),
                end=lambda outcome: end(outcome).attempt,
            )
        if spec.transactional:
            give = lambda: end(self._attempted(spec, position, context))  # noqa: E731
            return self.together.run(position, give)
        return end(self._attempted(spec, position, context))

    def _attempted(
        self, spec: NodeSpec, position: Position, context: NodeContext
    ) -> Completed | Asked | Deferred:
        """What the handler gives, or what a child of its asks or waits for."""
        try:
            result = self._call(spec, position, context)
        except (ChildPaused, ChildDeferred, BaseExceptionGroup) as ended:
            return read_stop(ended)
        return self._read(spec.id, result)

    def _read(self, node_id: str, result: Any) -> Completed | Asked:
        """Understand a result; a node with `wait_to` completes into its questions."""
        outcome = read_result(node_id, result)
        if isinstance(outcome, Asked) and node_id in self.blueprint.wait_to:
            return Completed(asks=outcome.interrupts)
        return outcome

    def context(
        self, position: Position, activation: Activation, fork: Fork | None
    ) -> NodeContext:
        """What the handler is told, with the answers that came for it."""
        run = position.run
        context = NodeContext(
            node_id=activation.node,
            graph=run.digest,
            run_id=run.id,
            thread_id=run.thread_id,
            step=position.step + 1,
            attempt=position.tries.get(activation.id, 0)
            + position.lost.get(activation.id, 0)
            + 1,
            activation_id=activation.id,
            root_run_id=run.root_run_id,
            namespace=run.namespace,
            fork=fork,
            recursion_frames=self.config.frames,
            _lineage=position.lineage,
        )
        context._emit = emitter(self.log, context)
        context._is_cancelled = self.stop.is_set
        context._heartbeat = self.stop.renew
        if self.blueprint.nodes[activation.node].transactional:
            # Renewed here, the run's row would be locked until the handler ends.
            context._heartbeat = self.stop.require_going
        return context

    def _hand_over(
        self, position: Position, activation: Activation, context: NodeContext
    ) -> None:
        """Give an attempt its own copies of the Send argument and of the answers.

        An earlier attempt may have changed those that it got.
        """
        is_sent = activation.arg is not UNSET
        context.source = self.blueprint.nodes[activation.node].source
        context.send_arg = copy_value(activation.arg) if is_sent else None
        answers = position.answered_waits(activation.id)
        deliver_answers(
            context, [(wait.key, copy_value(wait.answer)) for wait in answers]
        )

    def _call(self, spec: NodeSpec, position: Position, context: NodeContext) -> Any:
        copy = self.blueprint.fold.copy(position.state)
        arguments = (copy, context) if spec.takes_context else (copy,)
        variables = contextvars.copy_context()
        variables.run(current_children.set, self._children(position, context))
        result = self._bounded(
            spec, spec.handler, context, arguments, variables, is_awaited=spec.is_async
        )
        if not self.blueprint.fold.updates_are_fields:
            return result
        if isinstance(result, Command) and result.update is copy:
            changes = self.blueprint.fold.changes_of(position.state, copy)
            return replace(result, update=changes)
        if result is copy:
            return self.blueprint.fold.changes_of(position.state, copy)
        return result

    def _bounded(
        self,
        spec: NodeSpec,
        function: Callable[..., Any],
        context: NodeContext,
        arguments: tuple[Any, ...],
        variables: contextvars.Context,
        *,
        is_awaited: bool,
    ) -> Any:
        """Call `function` within the node's timeout; past it its context is over."""
        timeout = spec.timeout_seconds or self.blueprint.node_timeout_seconds
        try:
            if spec.transactional:
                result = call_here(
                    function, arguments, context, timeout=timeout, variables=variables
                )
            else:
                result = call(
                    function,
                    arguments,
                    node_id=spec.id,
                    is_async=is_awaited,
                    timeout=timeout,
                    loop=self.loop,
                    at_thread_end=self.store.thread_finished,
                    variables=variables,
                )
        except NodeTimeoutError:
            context.end()
            raise
        self.stop.require_whole(context.has_seen_end)
        return result

    def _children(self, position: Position, context: NodeContext) -> Children:
        """What the handler's calls of graphs are run by."""
        spec = self.blueprint.nodes[context.node_id]
        return Children(
            store=self.store,
            config=self.config,
            run=position.run,
            lineage=position.lineage,
            node_id=context.node_id,
            activation_id=context.activation_id,
            answers=tuple(position.answered_waits(context.activation_id)),
            drive=self.drive_child,
            hold=self.stop.renew,
            note=partial(self.log.tell, step=context.step),
            is_elsewhere=spec.is_async,
            is_refused=spec.runs_once,
            told=self.told,
        )

    def _handled(
        self,
        position: Position,
        activation: Activation,
        context: NodeContext,
        failed: Ran,
        error: Exception,
    ) -> Ran:
        """What the node's error handler makes of a failure; the failure without one.

        Its result is part of the same superstep. If it fails as well, the failure that
        it was called for stands, with its own told beside it.
        """
        spec = self.blueprint.nodes[activation.node]
        if spec.on_error is None:
            return failed
        handling = replace(context, usage={})
        self._hand_over(position, activation, handling)
        started = self.config.clock.now()
        try:
            ran = self._rescued(spec, position, activation, handling, started, error)
        except LeaseError:
            raise
        except Exception as second:  # noqa: BLE001 - the boundary of author's code
            self.stop.require_whole(handling.has_seen_end, second)
            error.add_note(f"its error handler failed too: {second!r}")
            first = failed.attempt.started_at
            return self._failed(position, activation, context, first, error)
        self.on_attempt(failed.attempt)
        return ran

    def _rescued(
        self,
        spec: NodeSpec,
        position: Position,
        activation: Activation,
        context: NodeContext,
        started: datetime,
        error: Exception,
    ) -> Ran:
        """What the error handler gives, stored in the way of its node's kind."""
        rescue: Any = spec.on_error
        arguments = (self.blueprint.fold.copy(position.state), context, error)
        variables = contextvars.copy_context()

        def give() -> Ran:
            result = self._bounded(
                spec,
                rescue,
                context,
                arguments,
                variables,
                is_awaited=is_async(rescue),
            )
            outcome = read_result(activation.node, result)
            context.attempt += 1
            return self._ended(position, activation, context, started, outcome)

        return self.together.run(position, give) if spec.transactional else give()

    def _is_long(self, delay: float) -> bool:
        """Whether the wait for a retry is stored rather than slept."""
        most = self.config.longest_sleep_seconds
        return most is not None and delay > most

    def _retry_delay(
        self, spec: NodeSpec, attempts: int, error: Exception
    ) -> float | None:
        policy = None if spec.at_most_once else spec.retry or self.config.retry
        decision = decide_retry(policy, attempts, error, self.config.clock.random())
        return decision.delay_seconds if decision else None

    def _schedule_retry(
        self, position: Position, failed: Ran, context: NodeContext, delay: float
    ) -> NodeContext:
        """Wait, and give what the next attempt is told."""
        self.on_attempt(failed.attempt)
        self.log.tell(
            "node.retry_scheduled",
            step=position.step + 1,
            node=context.node_id,
            attempt=context.attempt,
            delay=delay,
        )
        self.stop.require_going()
        self.config.clock.sleep(delay)
        return context.next_attempt()

    def _failed(
        self,
        position: Position,
        activation: Activation,
        context: NodeContext,
        started: datetime,
        error: Exception,
    ) -> Ran:
        failure = NodeFailure.of(
            error,
            node_id=activation.node,
            activation_id=activation.id,
            attempts=context.attempt,
        )
        attempt = self._attempt(position, activation, context, started)
        attempt.update(status=AttemptStatus.FAILED, error=failure.to_json())
        return Ran(outcome=Failed(failure=failure), attempt=AttemptRecord(**attempt))

    def _ended(
        self,
        position: Position,
        activation: Activation,
        context: NodeContext,
        started: datetime,
        outcome: Outcome,
    ) -> Ran:
        asked = isinstance(outcome, (Asked, Deferred))
        status = AttemptStatus.INTERRUPTED if asked else AttemptStatus.SUCCEEDED
        attempt = self._attempt(position, activation, context, started)
        return Ran(outcome=outcome, attempt=AttemptRecord(**attempt, status=status))

    def _attempt(
        self,
        position: Position,
        activation: Activation,
        context: NodeContext,
        started: datetime,
    ) -> dict[str, Any]:
        return {
            "id": self.config.clock.new_id(),
            "activation_id": activation.id,
            "node_id": activation.node,
            "number": context.attempt,
            "lineage": position.lineage,
            "sequence": position.sequence + 1,
            "started_at": started,
            "ended_at": self.config.clock.now(),
            "usage": dict(context.usage) or None,
            "namespace": position.run.namespace,
        }
