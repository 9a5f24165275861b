"""Runs that stop at the superstep limit: failed once what they used is known.

A run whose usage is incomplete, or whose project's provider cannot tell, stays
`closing`: nobody drives it, it holds its thread, and the sweep asks again. See Note
[First failure]. Read `stateknot/kernel/usage.py` for what complete means.

Note [First failure]
~~~~~~~~~~~~~~~~~~~~
Why a closing run stopped is journalled when it stops and read from there when it is
settled, so that asking late, twice, or from a process with other limits cannot change
it. A run that was settled is not closing any more: settling it again finds nothing to
do and asks nobody.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from stateknot.errors import RecursionLimitError
from stateknot.kernel.usage import UNKNOWN
from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from stateknot.kernel.failure import NodeFailure
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.store import Store
    from stateknot.kernel.usage import Usage

logger = logging.getLogger("stateknot")


def ask_usage(store: Store, run_id: str) -> Usage:
    """What the run used; incomplete when that cannot be told now."""
    try:
        return store.measure_usage(run_id)
    except Exception as error:  # noqa: BLE001 - a project's provider may raise anything
        logger.warning("usage unknown: %s", error, extra={"run_id": run_id})
        return UNKNOWN


def conclude(
    store: Store, run: RunRecord | None, error: Exception, failure: NodeFailure
) -> tuple[RunStatus, dict[str, Any] | None]:
    """How a run that stops with `error` stands, and what is recorded of it.

    A child run is not kept open: its parent is told, and counts what it used.
    """
    recorded = failure.to_json()
    if run is None or not isinstance(error, RecursionLimitError):
        return RunStatus.FAILED, recorded
    usage = ask_usage(store, run.id)
    if usage.is_complete:
        return RunStatus.FAILED, {**recorded, "usage": dict(usage.amounts)}
    if run.parent_run_id is not None:
        return RunStatus.FAILED, recorded
    return RunStatus.CLOSING, None


def settle(store: Store, run_id: str) -> bool:
    """Record the failure of a closing run if its usage is known by now.

    Idempotent, see Note [First failure]. The usage is asked for outside of any
    transaction, since a provider may take its time.
    """
    usage = ask_usage(store, run_id)
    if not usage.is_complete:
        return False
    with store.atomic():
        return store.settle(run_id, dict(usage.amounts))
