"""How a run ends badly otherwise than by a node: a limit, a deadline, a cancel.

Import them from `stateknot.errors`; see `node_failures.py` for failures of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.errors.families import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence


class RecursionLimitError(RunError):
    """Raised when the run used up its supersteps with work still pending.

    The last boundary stands, with `pending` due behind it. Resume with a higher
    `step_limit` to go on.
    """

    code = "runtime.graph.superstep_limit_reached"

    def __init__(self, limit: int, pending: Sequence[str] = ()) -> None:
        due = ", ".join(map(repr, pending[:5])) or "nodes"
        super().__init__(
            f"the run reached its limit of {limit} steps with {due} still pending; "
            "raise the limit (step_limit=) and resume, or mend the loop"
        )
        self.limit, self.pending = limit, tuple(pending)


class NodeVisitLimitError(RunError):
    """Raised before a superstep that would visit one node more often than allowed."""

    code = "runtime.graph.node_visit_limit_reached"

    def __init__(self, node_id: str, limit: int) -> None:
        super().__init__(f"node {node_id!r} would run more than {limit} times")
        self.node_id, self.limit = node_id, limit


class RunDeadlineError(RunError):
    """Raised between supersteps when the run is older than its deadline allows."""

    code = "runtime.graph.deadline_exceeded"

    def __init__(self, deadline_seconds: float) -> None:
        super().__init__(f"the run exceeded its deadline of {deadline_seconds:g} s")
        self.deadline_seconds = deadline_seconds


class RunCancelledError(RunError):
    """Raised in the caller's process, or by `ctx.heartbeat()`, for a cancelled run."""

    code = "run.cancelled"

    def __init__(self, run_id: str, reason: str = "") -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"run {run_id} was cancelled{why}; what it finished is kept")
        self.run_id, self.reason = run_id, reason


class SubAgentDepthError(RunError):
    """Raised when graphs that run graphs nest deeper than the policy admits."""

    code = "runtime.graph.depth_exceeded"

    def __init__(self, max_depth: int) -> None:
        super().__init__(f"graphs nest deeper than {max_depth} levels")
        self.max_depth = max_depth


class NodeTimeoutError(RunError):
    """Raised into an attempt that ran longer than its node's timeout."""

    code = "runtime.node_timeout"

    def __init__(self, node_id: str, timeout_seconds: float) -> None:
        super().__init__(
            f"node {node_id!r} ran longer than its timeout of {timeout_seconds:g} s"
        )
        self.node_id, self.timeout_seconds = node_id, timeout_seconds
