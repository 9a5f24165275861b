"""How a node may fail for good, as the exception that a caller gets.

Import them from `stateknot.errors`. What travels inside the engine is the value of
`stateknot/kernel/failure.py`.
"""

from __future__ import annotations

from typing import Any

from stateknot.errors.families import GraphError, MissingNodeError, RunError


class NodeFailedError(RunError):
    """Raised by `run*`, `resume*` and `retry` when a node failed for good.

    `__cause__` is the original exception where it is at hand. The boundary it left is
    `checkpoint_id`; mend the cause and `retry`, or edit the state first.
    """

    code = "node.failed"

    def __init__(
        self,
        message: str,
        *,
        node_id: str = "",
        code: str | None = None,
        error_type: str = "",
        attempts: int = 0,
        run_id: str = "",
        thread_id: str | None = None,
        checkpoint_id: str | None = None,
        execution: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node_id = node_id
        self.code = code or type(self).code
        self.error_type = error_type
        self.attempts = attempts
        self.run_id = run_id
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        self.execution = execution


class ReducerError(NodeFailedError):
    """Raised when folding a node's update failed, or gave a state the model refuses."""

    code = "node.reducer_failed"


class RoutingError(NodeFailedError):
    """Raised when a node's successors could not be chosen; its result is kept."""

    code = "node.routing_failed"


class MissingRouteError(RoutingError):
    """Raised when a router returned a label that the node does not declare."""

    code = "node.missing_route"


class UndeclaredRouteError(MissingRouteError):
    """Raised when a node chose a route that is neither a label nor a route id of it."""

    code = "node.undeclared_route"


class SuccessorParallelismExceededError(RoutingError):
    """Raised when more nodes would be due in one superstep than the graph admits.

    Join branches earlier, or raise the graph's `maximum_parallelism`.
    """

    code = "node.successor_parallelism_exceeded"


class UnknownTargetError(RoutingError, MissingNodeError):
    """Raised when `goto` names a node that is not in the graph."""

    code = "node.unknown_target"
    default_kind = "MissingNode"
    kind, owner = "MissingNode", "Graph"


class InvalidTargetError(RoutingError, GraphError):
    """Raised when `goto` names START, which nothing may jump to."""

    code = "node.invalid_target"
    kind, owner = "Graph", "Graph"


class OutcomeUnknownError(RunError):
    """Told of an at-most-once node that was lost or timed out while it ran.

    It may have acted, so it is not run again by itself. Look at what it was to do; then
    mark it as done with an update made as that node, or retry with `rerun_unknown`.
    """

    code = "node.outcome_unknown"

    def __init__(self, node_id: str, reason: str = "") -> None:
        what = reason or "its process was lost while it ran"
        super().__init__(
            f"nobody can tell whether node {node_id!r} acted: {what}. Find out; then "
            f"mark it as done (update_state with as_node={node_id!r}), or run it once "
            "more on purpose (retry with rerun_unknown=True)"
        )
        self.node_id = node_id


class JoinUnsatisfiedError(NodeFailedError):
    """Raised when a run has nothing left to do but a join that can never fire."""

    code = "graph.join_unsatisfied"
