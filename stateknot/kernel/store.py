"""The port that the executor needs of a store; two stores implement it.

`MemoryCheckpointer` (runtime) and `DjangoCheckpointer` (storage) pass one contract
suite. Every write belongs in `atomic()`, and every write of a driver names its `Fence`:
a store refuses it with LeaseError once another epoch holds the run. A record is never
modified after it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stateknot.kernel.records import NO_LIMIT
from stateknot.kernel.vocabulary import AttemptStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        Event,
        Fence,
        JournalRecord,
        Namespace,
        Recorded,
        RunRecord,
        Slots,
        WaitRecord,
    )
    from stateknot.kernel.usage import Usage
    from stateknot.kernel.vocabulary import JsonValue, RunStatus
    from stateknot.kernel.writes import (
        Admission,
        Boundary,
        Cancellation,
        Deferral,
        ManualWrite,
        Move,
        Reopening,
        ThreadFork,
    )


class Store(Protocol):
    """Keeps threads, runs, checkpoints, attempts, waits and the journal."""

    @property
    def heartbeat_seconds(self) -> float | None:
        """How often a driver renews its lease; None where leases do not expire."""
        ...

    def atomic(self) -> AbstractContextManager[None]:
        """All writes inside commit together or not at all. May be nested."""
        ...

    def check_placement(self) -> None:
        """Raise RunError where an in-process run must not stand (a transaction)."""
        ...

    def now(self) -> datetime:
        """The store's clock, an aware UTC datetime."""
        ...

    def thread_finished(self) -> None:
        """Free what the calling worker thread holds (database connections)."""
        ...

    def find_checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        namespace: Namespace = (),
    ) -> CheckpointRecord | None:
        """The named checkpoint, or the newest of the namespace; None if unknown."""
        ...

    def list_checkpoints(
        self,
        thread_id: str,
        *,
        namespace: Namespace = (),
        limit: int | None = None,
        before: str | None = None,
    ) -> list[CheckpointRecord]:
        """The newest checkpoint and its ancestors, newest first.

        `before` names a checkpoint: the walk starts at its parent.
        """
        ...

    def find_run(self, run_id: str) -> RunRecord | None:
        """The run, or None."""
        ...

    def list_children(self, run_id: str) -> list[RunRecord]:
        """The runs that nodes of a run made, oldest first."""
        ...

    def find_thread_run(
        self, thread_id: str, namespace: Namespace = ()
    ) -> RunRecord | None:
        """The newest run of the thread in the namespace, or None."""
        ...

    def list_waits(self, thread_id: str, namespace: Namespace = ()) -> list[WaitRecord]:
        """Waits that are not closed, in the order in which they were asked."""
        ...

    def find_wait(self, wait_id: str) -> WaitRecord | None:
        """The wait, whatever its status, or None."""
        ...

    def find_question(self, thread_id: str, question_id: str) -> WaitRecord | None:
        """The newest wait of the thread with that public id, whatever its status."""
        ...

    def list_waits_at(self, checkpoint: CheckpointRecord) -> list[WaitRecord]:
        """Waits of the checkpoint's lineage that were asked up to it, closed too."""
        ...

    def list_results(self, run: RunRecord) -> list[AttemptRecord]:
        """Finished attempts of the run's lineage that no boundary has folded."""
        ...

    def list_results_at(self, checkpoint: CheckpointRecord) -> list[AttemptRecord]:
        """Results that were pending at the checkpoint, folded since or not."""
        ...

    def list_journal(self, run_id: str, after: int = -1) -> list[JournalRecord]:
        """Journal rows with a number above `after`, in order; empty if unknown."""
        ...

    def last_sequence(self, thread_id: str, namespace: Namespace = ()) -> int:
        """The sequence of the newest checkpoint, -1 if there is none."""
        ...

    def admit(self, admission: Admission, holder: str | None = None) -> RunRecord:
        """Store a run with its input record; with `holder` it is claimed at once.

        Raises ThreadBusyError while another run holds the thread.
        """
        ...

    def enqueue(self, admission: Admission) -> RunRecord:
        """Store a root run that begins once its thread is free.

        It begins at once on a free thread, else (`is_queued`, without a checkpoint) in
        the transaction in which the run before it ends; several begin in order.
        """
        ...

    def claim(
        self,
        run_id: str,
        holder: str,
        *,
        supersede: bool = False,
        slots: Slots = NO_LIMIT,
    ) -> Fence | None:
        """Take the lease of a run that is due; None when there is nothing to drive.

        Also None while as many others are driven as `slots` allows; of claims at the
        same time no more get through than that.

        `supersede` takes it from a live holder too: a parent's fence covers its
        children, so nobody but the parent's holder may do that.
        """
        ...

    def renew(self, fence: Fence) -> bool:
        """Extend the lease; True when the run is to be cancelled, and nothing was.

        Raises LeaseError when it was lost.
        """
        ...

    def release(self, fence: Fence) -> bool:
        """Give the lease back; True when the run wants to be driven again.

        A run that is to be cancelled ends instead.
        """
        ...

    def commit(self, fence: Fence, boundary: Boundary) -> bool:
        """Store a boundary and move the head, in one transaction of its own.

        A boundary whose status is not `running` also gives the lease back. True when
        the run is to be cancelled: then it went no further than
        `cancelling.as_cancelled` says, and its driver must stop.
        """
        ...

    def record_attempts(
        self, fence: Fence, attempts: Sequence[AttemptRecord], events: Sequence[Event]
    ) -> None:
        """Store attempts that ended between boundaries, or begin."""
        ...

    def record_with(self, fence: Fence, work: Callable[[], Recorded | None]) -> None:
        """Call `work` and store the attempts it gives, all in one transaction.

        What `work` writes to the store's own database commits or vanishes with them;
        when it gives None, everything is undone. The fence is checked behind `work`,
        so that a heartbeat is not blocked while it runs.
        """
        ...

    def defer(self, fence: Fence, deferral: Deferral) -> bool:
        """Put the head's superstep off and give the lease back.

        The run is `waiting` and due after the delay, by the store's clock. True when
        it was to be cancelled, and ended instead.
        """
        ...

    def list_visits(self, run_id: str) -> dict[tuple[int, str], str]:
        """The node of each activation that the run has tried, by lineage and id."""
        ...

    def count_tries(
        self,
        run: RunRecord,
        sequence: int,
        status: AttemptStatus = AttemptStatus.FAILED,
    ) -> dict[str, int]:
        """How often each activation of the superstep behind the head was tried, and
        ended like that."""
        ...

    def measure_usage(self, run_id: str) -> Usage:
        """What the run used. Raises what a project's provider of it raises.

        Transaction: none, since a provider may ask elsewhere.
        """
        ...

    def settle(self, run_id: str, usage: dict[str, JsonValue]) -> bool:
        """Fail a closing run with the failure that closed it, and what it used.

        False, with nothing written, for a run that is not closing.
        """
        ...

    def finish(
        self,
        fence: Fence,
        status: RunStatus,
        *,
        error: dict[str, JsonValue] | None,
        events: Sequence[Event],
    ) -> bool:
        """End a drive without a checkpoint (a limit): the last boundary stands.

        True when the run was to be cancelled, and ended so.
        """
        ...

    def cancel(self, cancellation: Cancellation) -> RunRecord:
        """End a run as cancelled, or ask its driver to while a live lease is on it.

        Its child runs with it; what they and it asked or waited for is closed. Once
        more, it ends a run whose driver is gone; an ended run stays as it is.
        Raises NotFoundError, and RunError where `require_can_cancel` does.
        """
        ...

    def reopen(self, reopening: Reopening) -> RunRecord:
        """Make a run pending again, from its head or from the checkpoint named.

        What another run of the thread still asked is closed. Raises ThreadBusyError,
        and StaleCheckpointError when the head is not the one expected.
        """
        ...

    def answer(self, wait_id: str, value: JsonValue, *, actor: str = "") -> WaitRecord:
        """Store an answer. Raises AlreadyAnsweredError; the first answer is kept."""
        ...

    def write(self, change: ManualWrite) -> CheckpointRecord:
        """Store a manual checkpoint.

        Raises StaleCheckpointError when the head moved, ThreadBusyError while driven.
        """
        ...

    def move(self, move: Move) -> RunRecord:
        """Pin a run to another revision.

        Raises StaleCheckpointError when the head moved, ThreadBusyError while driven.
        """
        ...

    def fork(self, fork: ThreadFork) -> RunRecord:
        """Store a new thread from a copy of a checkpoint."""
        ...
