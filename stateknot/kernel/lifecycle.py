"""Which status a run may leave for which, and what may be asked of it when.

Both stores ask here before they change a run, so that they refuse alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stateknot.errors import (
    ResumeError,
    RunError,
    SerializationError,
    StaleCheckpointError,
    ThreadBusyError,
)
from stateknot.kernel.limits import MAXIMUM_KEY
from stateknot.kernel.profile import check_profile
from stateknot.kernel.vocabulary import RunStatus

if TYPE_CHECKING:
    from stateknot.kernel.records import RunRecord

S = RunStatus

TRANSITIONS: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    S.PENDING: frozenset({S.RUNNING, S.CANCELLED, S.FAILED}),
    S.RUNNING: frozenset(
        {
            S.PENDING,
            S.WAITING,
            S.INTERRUPTED,
            S.CLOSING,
            S.COMPLETED,
            S.FAILED,
            S.CANCELLED,
        }
    ),
    S.WAITING: frozenset({S.PENDING, S.RUNNING, S.CANCELLED, S.FAILED}),
    S.INTERRUPTED: frozenset({S.PENDING, S.CANCELLED, S.FAILED}),
    S.CLOSING: frozenset({S.PENDING, S.FAILED, S.CANCELLED}),
    S.COMPLETED: frozenset({S.PENDING}),
    S.FAILED: frozenset({S.PENDING}),
    S.CANCELLED: frozenset({S.PENDING}),
}
"""Where each status may lead. An ended run is only left by reopening it on purpose."""


def may_follow(before: RunStatus, after: RunStatus) -> bool:
    """Whether a run may go from `before` to `after`; staying as it is always may."""
    return before == after or after in TRANSITIONS[before]


def require_can_reopen(
    run: RunRecord, holding: RunRecord | None, *, is_driven: bool
) -> None:
    """Refuse to reopen a run that is being driven or whose thread another run holds.

    Raises ThreadBusyError.
    """
    if holding is not None and holding.id != run.id:
        raise ThreadBusyError(
            thread_id=run.thread_id, run_id=holding.id, status=holding.status
        )
    if is_driven:
        raise ThreadBusyError(thread_id=run.thread_id, run_id=run.id, status=run.status)


def require_can_write(run: RunRecord, *, is_driven: bool) -> None:
    """Refuse a manual write while the run is being driven. Raises ThreadBusyError."""
    if is_driven:
        raise ThreadBusyError(thread_id=run.thread_id, run_id=run.id, status=run.status)


def require_head(run: RunRecord, expected: str | None) -> None:
    """Refuse what was decided at another head. Raises StaleCheckpointError."""
    if expected is not None and run.head_id != expected:
        raise StaleCheckpointError(
            thread_id=run.thread_id, expected=expected, found=run.head_id
        )


def require_key(key: str, what: str) -> None:
    """Refuse a key that not every store can keep. Raises RunError."""
    try:
        check_profile(key, what)
    except SerializationError as error:
        raise RunError(str(error)) from error
    if not 0 < len(key) <= MAXIMUM_KEY:
        raise RunError(
            f"{what} {key[:40]!r} has {len(key)} characters; use 1 to {MAXIMUM_KEY}"
        )


def require_same_graph(key: str, thread_graph_id: str, graph_id: str) -> None:
    """Refuse a run of another graph on a thread. Raises RunError."""
    if thread_graph_id != graph_id:
        raise RunError(
            f"thread {key!r} belongs to graph {thread_graph_id!r}; runs of "
            f"{graph_id!r} need a thread of their own"
        )


def require_resumable(run: RunRecord | None, thread_id: str) -> RunRecord:
    """The run, or ResumeError naming the thread."""
    if run is None:
        raise ResumeError(f"no checkpoint found on thread {thread_id!r}")
    return run
