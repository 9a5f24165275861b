"""What is known of a worker that was lost: nothing but what was due when it was.

Pure: `lost_attempts` are what the takeover of its run records, `loss_failure` why a run
is given up after several in a row. See decision 18 in `docs/why/composition.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.errors import RunError
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.records import AttemptRecord
from stateknot.kernel.vocabulary import AttemptStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from stateknot.kernel.records import Activation

CODE = "node.worker_lost"


def lost_attempts(
    unfinished: Iterable[Activation],
    *,
    tries: Mapping[str, int],
    lineage: int,
    sequence: int,
    started_at: datetime,
    ended_at: datetime,
    new_id: Callable[[], str],
) -> tuple[AttemptRecord, ...]:
    """An attempt for each activation that may have been running.

    `tries` counts the earlier attempts of each. It began no earlier than the boundary
    that made it due (`started_at`), and was given up when the lease ran out.
    """
    return tuple(
        AttemptRecord(
            id=new_id(),
            activation_id=activation.id,
            node_id=activation.node,
            number=tries.get(activation.id, 0) + 1,
            status=AttemptStatus.LOST,
            lineage=lineage,
            sequence=sequence,
            started_at=min(started_at, ended_at),
            ended_at=ended_at,
        )
        for activation in unfinished
    )


def loss_failure(unfinished: tuple[Activation, ...], claims: int) -> NodeFailure:
    """The failure of a run that lost `claims` workers in a row at one boundary."""
    nodes = ", ".join(dict.fromkeys(activation.node for activation in unfinished[:5]))
    error = RunError(
        f"{claims} workers in a row were lost while {nodes or 'nothing'} was due: "
        "killed by the system (out of memory?), or stopped for longer than the "
        "lease. Mend that and retry"
    )
    first = unfinished[0] if unfinished else None
    return NodeFailure.of(
        error,
        node_id=first.node if first else "",
        activation_id=first.id if first else "",
        kind="lost",
        code=CODE,
        attempts=claims,
    )
