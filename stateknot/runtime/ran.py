"""What became of an activation that ran: the value between node and step runner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stateknot.kernel.outcome import Completed
from stateknot.kernel.result_codec import encode_result

if TYPE_CHECKING:
    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.outcome import Outcome
    from stateknot.kernel.records import AttemptRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The outcome of an activation, and its last attempt (retried ones went before).

    One that `is_recorded` is in the store already.
    """

    outcome: Outcome
    attempt: AttemptRecord
    is_recorded: bool = False


def stored_attempt(fold: StateFold, ran: Ran) -> AttemptRecord:
    """The attempt with its result, for work that must wait for its fold."""
    if not isinstance(ran.outcome, Completed):
        return ran.attempt
    result = encode_result(fold, ran.attempt.node_id, ran.outcome)
    return replace(ran.attempt, result=result)
