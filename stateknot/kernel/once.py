"""Results of nodes that must not run twice: what is known of them, and who may drop it.

Pure. A node that is transactional or runs at most once leaves a pending result in a
commit of its own; of an at-most-once node one stands there from before its handler
begins. Its `once` says what is known. See Note [What is known of a result].

Note [What is known of a result]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
`begun`: the handler was started, and nobody can tell how far it came; whoever finds the
activation due must not run it. `failed`: it raised, so its author says that it did not
act; that too stays until somebody retries, since a crash in front of the failure's
boundary would otherwise run it again by itself. `done`: it finished; its result waits
for its fold like any other, but nothing throws it away. All three are pending results
because those are what a fork, a branch, a manual write and the recording of a lost
worker already take along, keep and close.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stateknot.errors import OutcomeUnknownError
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.vocabulary import AttemptStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from stateknot.kernel.records import AttemptRecord
    from stateknot.kernel.vocabulary import JsonValue

BEGUN, FAILED, DONE = "begun", "failed", "done"
_KEY = "once"


def marked(known: str, result: JsonValue | None = None) -> dict[str, JsonValue]:
    """The stored form of a result of which `known` is known."""
    return {**(result or {}), _KEY: known}


def without_mark(result: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The result as its node gave it."""
    return {name: value for name, value in result.items() if name != _KEY}


def known_of(attempt: AttemptRecord) -> str | None:
    """What is known of a pending result; None for that of an ordinary node."""
    known: str | None = (attempt.result or {}).get(_KEY)
    return known


def unfinished_failure(attempt: AttemptRecord) -> NodeFailure | None:
    """Why an activation with this pending result must not run; None if it is done."""
    known = known_of(attempt)
    if known not in (BEGUN, FAILED):
        return None
    told = NodeFailure.from_json(attempt.error) if attempt.error is not None else None
    if told is not None and (known == FAILED or told.code == OutcomeUnknownError.code):
        return told
    return unknown_failure(
        attempt.node_id,
        attempt.activation_id,
        attempt.number,
        reason=told.message if told is not None else "",
    )


def unknown_failure(
    node_id: str, activation_id: str, attempts: int, *, reason: str = ""
) -> NodeFailure:
    """The failure of a node of which nobody can tell whether it acted."""
    error = OutcomeUnknownError(node_id, reason)
    return NodeFailure.of(
        error, node_id=node_id, activation_id=activation_id, attempts=attempts
    )


def lost_start(attempt: AttemptRecord, at: datetime) -> AttemptRecord:
    """The end of an attempt that was begun and whose process is gone."""
    failure = unknown_failure(attempt.node_id, attempt.activation_id, attempt.number)
    return replace(
        attempt,
        status=AttemptStatus.LOST,
        ended_at=at,
        error=failure.to_json(),
        closes=True,
    )


def lost_if_begun(attempt: AttemptRecord, at: datetime) -> AttemptRecord:
    """An attempt that nobody will end any more, whatever became of it."""
    if attempt.status is not AttemptStatus.RUNNING:
        return attempt
    return replace(attempt, status=AttemptStatus.LOST, ended_at=at)


def droppable(
    results: Iterable[AttemptRecord],
    *,
    reuse_results: bool = True,
    is_forced: bool = False,
    rerun_unknown: bool = False,
) -> list[AttemptRecord]:
    """The pending results that going on throws away, so that their nodes run again.

    `is_forced` is a retry. A finished result of a node that must not run twice is never
    among them.
    """
    drops = {
        None: not reuse_results,
        BEGUN: rerun_unknown,
        FAILED: is_forced,
        DONE: False,
    }
    return [attempt for attempt in results if drops[known_of(attempt)]]
