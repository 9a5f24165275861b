"""The families of errors, and all of them but those that end a run.

Import them from `stateknot.errors`; read `run_ends.py` and `node_failures.py` next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence


class StateKnotError(Exception):
    """Root of all errors of this package."""

    code: str = "stateknot.error"


class GraphError(StateKnotError):
    """Raised when a graph definition, or an input to one, is not acceptable.

    `kind` is the rule that was broken first (`"MissingNode"`), `owner` the part of the
    definition it belongs to (`"Graph"`, `"GraphNode"`, ...), `issues` every broken
    rule found, this error first. What to do: change the graph at the named place.
    """

    code = "graph.invalid"
    default_kind: ClassVar[str] = "Graph"

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        owner: str = "Graph",
        issues: Sequence[GraphError] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or self.default_kind
        self.owner = owner
        self.issues: tuple[GraphError, ...] = tuple(issues) or (self,)

    def __str__(self) -> str:
        others = [issue.message for issue in self.issues if issue is not self]
        return "\n".join([self.message, *(f"also: {text}" for text in others)])


class ValidationError(GraphError):
    """Raised when parts of a graph contradict each other (two routings on a node)."""

    default_kind = "Validation"


class MissingStartError(GraphError):
    """Raised when no edge leaves START. Add `builder.add_edge(START, "first")`."""

    default_kind = "MissingStart"


class MissingNodeError(GraphError):
    """Raised when an edge, a route or an input names a node that does not exist."""

    default_kind = "MissingNode"


class StateError(StateKnotError):
    """Raised when a value broke its contract; `path` is where, such as `order.lines`.

    You see it when a handler returns what the state model or the value profile does
    not admit, or when a stored state no longer fits the model. What to do: return a
    value of the declared type, or edit the state.
    """

    code = "state.invalid"

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class SerializationError(StateError):
    """Raised when a value cannot be stored and read back equal."""

    code = "state.unserialisable"


class InvalidConcurrentUpdateError(StateError):
    """Raised when two activations of one superstep write a `last_value` field."""

    code = "state.concurrent_update"


class ScheduleError(StateError):
    """Raised when a schedule cannot be read; `path` is the field, such as `cron`."""

    code = "schedule.invalid"


class RunError(StateKnotError):
    """Raised when the caller asks for what a run or a thread cannot do now."""

    code = "run.refused"


class NotFoundError(RunError):
    """Raised when an id names no run, thread, checkpoint, question or graph."""

    code = "run.not_found"


class KeyReusedError(RunError):
    """Raised when an idempotency key comes with another request than the first time.

    What to do: use a new key for a new request, the same key only to send one again.
    """

    code = "request.key_reused"

    def __init__(self, key: str, first: str = "request") -> None:
        super().__init__(
            f"idempotency key {key!r} was used for another {first}; use a new key for "
            "a new request"
        )
        self.key = key


class ResumeError(RunError):
    """Raised when a thread has nothing to resume, or an answer fits no question."""

    code = "run.cannot_resume"

    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot resume: {reason}")
        self.reason = reason


class AlreadyAnsweredError(ResumeError):
    """Raised when a question has its answer; the first one is kept."""

    code = "run.already_answered"


class AnswerError(ResumeError):
    """Raised when an answer does not fit its question's schema; nothing changed."""

    code = "run.answer_invalid"


class SeveralQuestionsError(ResumeError):
    """Raised when an answer names no question and several are open.

    `questions` are their ids; none are known yet at an older checkpoint, which asks
    its questions anew. What to do: name one, after resuming from there if need be.
    """

    code = "run.several_questions"

    def __init__(self, *, thread_id: str, questions: Sequence[str]) -> None:
        known = ", ".join(questions) or (
            "none yet, since this checkpoint asks them anew: resume from it without an "
            "answer first"
        )
        super().__init__(
            f"several questions are open on thread {thread_id!r}; name the one you "
            f"answer by its id: {known}"
        )
        self.thread_id, self.questions = thread_id, tuple(questions)


class CheckpointError(RunError):
    """Raised when a checkpoint is missing, stale, or no store is configured."""

    code = "checkpoint.refused"

    def __init__(self, reason: str) -> None:
        super().__init__(f"checkpoint error: {reason}")
        self.reason = reason


class StaleCheckpointError(CheckpointError):
    """Raised when the head moved since the caller looked: `expected` is not `found`."""

    code = "checkpoint.stale"

    def __init__(self, *, thread_id: str, expected: str, found: str) -> None:
        super().__init__(
            f"thread {thread_id!r} is at checkpoint {found}, not at {expected} as "
            "expected; read it again and repeat the change"
        )
        self.thread_id, self.expected, self.found = thread_id, expected, found


class ThreadBusyError(RunError):
    """Raised when another run holds the thread; `run_id` names it.

    What to do: wait for it, cancel it, or start with `on_busy="enqueue"`.
    """

    code = "thread.busy"

    def __init__(self, *, thread_id: str, run_id: str, status: str) -> None:
        super().__init__(
            f"thread {thread_id!r} is held by run {run_id} ({status}); wait for it to "
            "end, resume or cancel it, or use another thread"
        )
        self.thread_id, self.run_id, self.status = thread_id, run_id, status


class RevisionMismatchError(RunError):
    """Raised before any handler runs when this process has other code than the run.

    `expected` is the digest the run is pinned to, `found` the one compiled here (or
    None). It may be a child run: one that a handler calls by hand is only known when
    its handler runs. What to do: run it in a process that has that revision, or move
    the run.
    """

    code = "graph.revision_mismatch"

    def __init__(
        self,
        expected: str,
        found: str | None,
        graph_id: str = "",
        thread_id: str | None = None,
    ) -> None:
        where = "" if thread_id is None else f" of thread {thread_id!r}"
        super().__init__(
            f"the run{where} is pinned to revision {expected} of graph {graph_id!r}, "
            f"this process has {found or 'no revision of it'}; it was left as it is. "
            "Keep the old revision registered until its runs end (register takes "
            "superseded=[...]), or move the run (manage.py stateknot_move, or "
            "services.move_run)"
        )
        self.expected, self.found, self.graph_id = expected, found, graph_id


class RevisionMoveError(RevisionMismatchError):
    """Raised when a run cannot be moved to another revision; it stays where it is.

    `problems` are all reasons: give aliases for nodes, a migration for the state.
    """

    code = "run.cannot_move"

    def __init__(
        self,
        *,
        run_id: str,
        thread_id: str,
        expected: str,
        found: str,
        problems: Sequence[str],
    ) -> None:
        super().__init__(expected, found)
        reasons = "; ".join(problems)
        self.args = (
            f"run {run_id} of thread {thread_id!r} stays on revision {expected} and is "
            f"not moved to {found}: {reasons}",
        )
        self.run_id, self.thread_id = run_id, thread_id
        self.problems = tuple(problems)


class CapabilityError(RunError):
    """Raised when a named agent or graph is not registered in this process."""

    code = "runtime.capability_missing"


class LimitExceededError(RunError):
    """Raised when a budget or a ceiling (Sends in a superstep, usage) is passed."""

    code = "runtime.limit_exceeded"


class NodeError(StateKnotError):
    """Raise this in a handler to fail with a `code` of your own.

    `retryable=True` lets the node's retry policy try again; otherwise the run stops at
    a failure boundary that carries the code.
    """

    def __init__(self, code: str, message: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable


class RetryableError(StateKnotError):
    """Raise this in a handler for a fault that another try may not meet.

    `retry_after` (seconds) is the least wait before the next attempt.
    """

    code = "node.retryable"

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LeaseError(StateKnotError):
    """Raised when a worker lost its run: stop at once and write nothing."""

    code = "lease.lost"

    def __init__(self, run_id: str, epoch: int) -> None:
        super().__init__(
            f"run {run_id} is no longer driven under epoch {epoch}; another worker or "
            "an operator took it, and nothing of this drive was written"
        )
        self.run_id, self.epoch = run_id, epoch


class StoreLostError(LeaseError):
    """Raised when the store was lost in a write: what stands is not known here.

    You see it when the database went away in the commit of a node that must not run
    twice. The drive stops; whoever takes the run up reads what was stored. What to do:
    nothing on a worker; in a caller's own process, resume once the database is back.
    """

    code = "store.lost"

    def __init__(self, run_id: str, epoch: int, reason: str) -> None:
        super().__init__(run_id, epoch)
        self.args = (
            f"the store was lost in a write of run {run_id} ({reason}); the next drive "
            "goes on from what was stored",
        )
