"""Running one activation to its end: attempts, retries, timeout, answers.

A handler's exception ends here and goes on as a value (`Failed`). `SystemExit` and
`KeyboardInterrupt` are never swallowed. Handlers run outside any transaction. Read
`step_runner.py` for who calls this, from which thread.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import LeaseError, NodeTimeoutError
from stateknot.kernel.canonical import domain_digest
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.outcome import Asked, Completed, Failed, read_result
from stateknot.kernel.records import Activation, AttemptRecord
from stateknot.kernel.result_codec import encode_result
from stateknot.kernel.retry import decide_retry
from stateknot.kernel.vocabulary import UNSET, AttemptStatus
from stateknot.runtime.context import Fork, NodeContext, deliver_answers

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint, NodeSpec
    from stateknot.kernel.outcome import Outcome
    from stateknot.runtime.config import RunConfig
    from stateknot.runtime.events import EventLog
    from stateknot.runtime.loop_thread import LoopThread
    from stateknot.runtime.position import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of an activation, and its last attempt (retried ones went before)."""

    outcome: Outcome
    attempt: AttemptRecord


@dataclass(slots=True, kw_only=True)
class NodeRunner:
    """Runs activations of one drive. `on_attempt` gets each attempt that is retried."""

    blueprint: Blueprint
    config: RunConfig
    log: EventLog
    loop: LoopThread
    on_attempt: Callable[[AttemptRecord], None]
    is_cancelled: Callable[[], bool]
    heartbeat: Callable[[], None]
    thread_finished: Callable[[], None]

    def run(
        self, position: Position, activation: Activation, fork: Fork | None = None
    ) -> Ran:
        """Run `activation` of the position's superstep until it ends for good."""
        spec = self.blueprint.nodes[activation.node]
        context = self.context(position, activation, fork)
        while True:
            started = self.config.clock.now()
            try:
                result = self._call(spec, position.state, context)
                outcome = read_result(activation.node, result)
            except LeaseError:
                raise
            except Exception as error:  # noqa: BLE001 - the boundary of author's code
                failed = self._failed(position, activation, context, started, error)
                retry = self._retry_delay(spec, context.attempt, error)
                if retry is None:
                    return failed
                self._schedule_retry(position, failed, context, retry)
            else:
                return self._ended(position, activation, context, started, outcome)

    def context(
        self, position: Position, activation: Activation, fork: Fork | None
    ) -> NodeContext:
        """What the handler is told, with the answers that came for it."""
        run = position.run
        key = {
            "run": run.id,
            "namespace": list(run.namespace),
            "lineage": position.lineage,
            "activation": activation.id,
        }
        context = NodeContext(
            node_id=activation.node,
            graph=run.digest,
            run_id=run.id,
            thread_id=run.thread_id,
            step=position.step + 1,
            attempt=1,
            activation_id=activation.id,
            root_run_id=run.root_run_id,
            idempotency_key=domain_digest("stateknot-idempotency-key-v1", key),
            namespace=run.namespace,
            fork=fork,
            send_arg=None if activation.arg is UNSET else activation.arg,
            recursion_frames=self.config.frames,
        )
        context._emit = self._emitter(context)
        context._is_cancelled = self.is_cancelled
        context._heartbeat = self.heartbeat
        answers = position.answered_waits(activation.id)
        deliver_answers(context, [(wait.key, wait.answer) for wait in answers])
        return context

    def _emitter(self, context: NodeContext) -> Callable[[str, Any], None]:
        def emit(name: str, data: Any) -> None:
            self.log.tell(
                "custom", step=context.step, node=context.node_id, name=name, data=data
            )

        return emit

    def _call(self, spec: NodeSpec, state: BaseModel, context: NodeContext) -> Any:
        copy = self.blueprint.fold.copy(state)
        arguments = (copy, context) if spec.takes_context else (copy,)
        timeout = spec.timeout_seconds or self.blueprint.node_timeout_seconds
        if spec.is_async:
            return self.loop.run(_bounded(spec, arguments, timeout))
        if timeout is None:
            return spec.handler(*arguments)
        return _call_in_thread(spec, arguments, timeout, self.thread_finished)

    def _retry_delay(
        self, spec: NodeSpec, attempts: int, error: Exception
    ) -> float | None:
        policy = spec.retry or self.config.retry
        decision = decide_retry(policy, attempts, error, self.config.clock.random())
        return decision.delay_seconds if decision else None

    def _schedule_retry(
        self, position: Position, failed: Ran, context: NodeContext, delay: float
    ) -> None:
        self.on_attempt(failed.attempt)
        self.log.tell(
            "node.retry_scheduled",
            step=position.step + 1,
            node=context.node_id,
            attempt=context.attempt,
            delay=delay,
        )
        self.config.clock.sleep(delay)
        context.attempt += 1
        context.usage = {}

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
        outcome: Completed | Asked,
    ) -> Ran:
        asked = isinstance(outcome, Asked)
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

    def stored_result(self, ran: Ran) -> AttemptRecord:
        """The attempt with its result, for work that must wait for its fold."""
        if not isinstance(ran.outcome, Completed):
            return ran.attempt
        node = ran.attempt.node_id
        result = encode_result(self.blueprint.fold, node, ran.outcome)
        return replace(ran.attempt, result=result)


async def _bounded(
    spec: NodeSpec, arguments: tuple[Any, ...], timeout: float | None
) -> Any:
    """Await the handler; at its timeout it is cancelled.

    A TimeoutError of the handler's own passes as it is.
    """
    if timeout is None:
        return await spec.handler(*arguments)
    task = asyncio.ensure_future(spec.handler(*arguments))
    done, _ = await asyncio.wait({task}, timeout=timeout)
    if done:
        return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=1)
    raise NodeTimeoutError(spec.id, timeout)


def _call_in_thread(
    spec: NodeSpec,
    arguments: tuple[Any, ...],
    timeout: float,
    at_end: Callable[[], None],
) -> Any:
    """Call a sync handler, giving up on it after `timeout` seconds.

    The thread cannot be stopped: it may go on, and what it returns is dropped.
    """
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(spec.handler(*arguments))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
            future.set_exception(error)
        finally:
            at_end()

    threading.Thread(target=work, name=f"node-{spec.id}", daemon=True).start()
    try:
        return future.result(timeout)
    except FutureTimeoutError:
        if future.done():
            raise
        raise NodeTimeoutError(spec.id, timeout) from None
