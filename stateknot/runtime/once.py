"""Running nodes that must not run twice: transactional ones, and at-most-once ones.

Both store their result in a commit of its own, which the barrier folds like any result
that was kept; `NodeRunner` calls the handler. See `kernel/once.py` for what is known of
such a result, and Note [Who asks, asks again].

Note [Who asks, asks again]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A handler that returns a question runs again from its start once that is answered. What
a transactional one wrote until then is undone, so that it stands once: written by the
attempt that finished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stateknot.errors import (
    LeaseError,
    NodeTimeoutError,
    RunCancelledError,
    SerializationError,
)
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.once import BEGUN, DONE, FAILED, marked, unknown_failure
from stateknot.kernel.outcome import Completed, Failed
from stateknot.kernel.records import AttemptRecord
from stateknot.kernel.reduction import FoldError
from stateknot.kernel.result_codec import encode_result
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.runtime.ran import Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.outcome import Outcome
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.runtime.position import Position
    from stateknot.runtime.stopping import Stop

    RecordWith = Callable[[Callable[[], Sequence[AttemptRecord] | None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Runs a transactional node's handler with the record of its result."""

    fold: StateFold
    record_with: RecordWith

    def run(self, position: Position, give: Callable[[], Ran]) -> Ran:
        """Call `give` and store what it gives, in one transaction.

        Raises what `give`, the write and the commit raise; nothing is stored then.
        """
        ran: list[Ran] = []

        def work() -> Sequence[AttemptRecord] | None:
            ran.append(give())
            outcome = ran[0].outcome
            if not isinstance(outcome, Completed):
                return None
            refused = self._refused(position, ran[0], outcome)
            if refused is not None:
                ran[0] = refused
                return None
            result = storable(self.fold, ran[0].attempt.node_id, outcome)
            attempt = replace(ran[0].attempt, result=marked(DONE, result))
            ran[0] = replace(ran[0], attempt=attempt, is_recorded=True)
            return [attempt]

        self.record_with(work)
        return ran[0]

    def _refused(self, position: Position, ran: Ran, outcome: Completed) -> Ran | None:
        """The failure of an update that cannot be folded; None if it can.

        Found at the barrier, what the handler wrote would stand without its result.
        """
        attempt = ran.attempt
        try:
            self.fold.fold(position.state, [(attempt.node_id, outcome.update)])
        except FoldError as error:
            failure = NodeFailure.of(
                error.cause,
                node_id=attempt.node_id,
                activation_id=attempt.activation_id,
                kind="reducer",
                code=None if error.is_reducer else "node.update_refused",
                attempts=attempt.number,
            )
            return ended_with(ran, failure)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMostOnce:
    """Runs an at-most-once node: its start is stored first, its end at once."""

    fold: StateFold
    record_now: Callable[[Sequence[AttemptRecord]], None]
    stop: Stop

    def run(
        self,
        start: AttemptRecord,
        call: Callable[[], Any],
        read: Callable[[Any], Outcome],
        end: Callable[[Outcome], AttemptRecord],
    ) -> Ran:
        """`call` the handler, `read` its result, and `end` the attempt that began.

        Raises LeaseError or RunCancelledError when the drive must stop: the start
        stands as it is then.
        """
        running = replace(start, status=AttemptStatus.RUNNING, result=marked(BEGUN))
        self.record_now([running])
        try:
            given = call()
        except LeaseError:
            raise
        except NodeTimeoutError as error:
            failure = _unknown(start, error)
            return self._close(start, Failed(failure=failure), end, marked(BEGUN))
        except Exception as error:  # noqa: BLE001 - the boundary of author's code
            if isinstance(error, RunCancelledError):
                self.stop.require_going()
            failure = _known(start, error)
            return self._close(start, Failed(failure=failure), end, marked(FAILED))
        try:
            outcome = read(given)
            result = self._result(start, outcome)
        except Exception as error:  # noqa: BLE001 - as above; but it has acted
            failure = _known(start, error)
            return self._close(start, Failed(failure=failure), end, marked(BEGUN))
        return self._close(start, outcome, end, result)

    def _result(self, start: AttemptRecord, outcome: Outcome) -> JsonValue | None:
        if not isinstance(outcome, Completed):
            return None
        return marked(DONE, storable(self.fold, start.node_id, outcome))

    def _close(
        self,
        start: AttemptRecord,
        outcome: Outcome,
        end: Callable[[Outcome], AttemptRecord],
        result: JsonValue | None,
    ) -> Ran:
        ran = Ran(outcome=outcome, attempt=end(outcome), is_recorded=True)
        if isinstance(outcome, Failed):
            ran = replace(ended_with(ran, outcome.failure), is_recorded=True)
        ended = replace(
            ran.attempt,
            id=start.id,
            started_at=start.started_at,
            result=result,
            closes=True,
        )
        self.record_now([ended])
        return replace(ran, attempt=ended)


def _known(start: AttemptRecord, error: Exception) -> NodeFailure:
    return NodeFailure.of(
        error,
        node_id=start.node_id,
        activation_id=start.activation_id,
        attempts=start.number,
    )


def _unknown(start: AttemptRecord, error: Exception) -> NodeFailure:
    return unknown_failure(
        start.node_id, start.activation_id, start.number, reason=str(error)
    )


def ended_with(ran: Ran, failure: NodeFailure) -> Ran:
    """What ran, as an attempt that failed."""
    attempt = replace(
        ran.attempt, status=AttemptStatus.FAILED, error=failure.to_json(), result=None
    )
    return Ran(outcome=Failed(failure=failure), attempt=attempt)


def storable(fold: StateFold, node_id: str, outcome: Completed) -> dict[str, Any]:
    """The stored form of a result that must be stored.

    Raises StateError for an update that is none, or that would not come back alike.
    """
    stored = encode_result(fold, node_id, outcome)
    if stored is not None:
        return stored
    if fold.reducer is None:
        fold.check_update(node_id, outcome.update)
    raise SerializationError(
        f"the result of node {node_id!r} would not come back as it is; a node that "
        "must not run twice returns values that its state's fields store"
    )
