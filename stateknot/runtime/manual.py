"""Edits of a thread by hand: updating its state, and forking it.

They go through the same reducers, validation and routing as a node's result. Each
writes inside the caller's `store.atomic()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    CheckpointError,
    GraphError,
    MissingNodeError,
    RevisionMismatchError,
    StaleCheckpointError,
    StateError,
)
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.outcome import Completed
from stateknot.kernel.records import Activation, Event
from stateknot.kernel.reduction import FoldError
from stateknot.kernel.routing import RouteError, plan_routes, with_ids
from stateknot.kernel.selection import RoutePlan
from stateknot.kernel.vocabulary import CheckpointSource
from stateknot.kernel.writes import Admission, CheckpointDraft, ManualWrite, ThreadFork
from stateknot.runtime.branching import carry_over
from stateknot.runtime.forking import copied_checkpoint, fork_children

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.records import CheckpointRecord, Namespace, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import RunConfig

_MANUAL = "(manual write)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """Edits threads of one graph in one store.

    With `digest` only threads of that revision: an edit is stored as what it changes,
    and what another revision's fields are called would not match.
    """

    blueprint: Blueprint
    config: RunConfig
    store: Store
    digest: str | None = None

    def update(
        self,
        thread_id: str,
        update: Any,
        *,
        as_node: str | None = None,
        expected: str | None = None,
        actor: str = "",
    ) -> CheckpointRecord:
        """Write a checkpoint on top of the thread's newest.

        With `as_node` the update counts as that node's result: its activations are done
        and its successors due. Raises MissingNodeError, GraphError, StateError,
        StaleCheckpointError, ThreadBusyError or CheckpointError, and changes nothing.
        """
        run, base = self._base(thread_id)
        if expected is not None and expected != base.id:
            raise StaleCheckpointError(
                thread_id=thread_id, expected=expected, found=base.id
            )
        self._check_node(as_node)
        state = self._state(base)
        folded = self._fold(state, as_node, update)
        # Under the ids that they run by, which depend on the step and this write moves
        # on: what was kept or tried under them, maybe by a crashed drive, stays theirs.
        pending = with_ids(base.pending, base.step + 1)
        survivors = tuple(a for a in pending if a.node != as_node)
        routes = self._route(folded.state, as_node, survivors, base)
        draft = CheckpointDraft(
            id=self.config.clock.new_id(),
            sequence=self.store.last_sequence(thread_id, self.config.namespace) + 1,
            lineage=run.lineage,
            parent_id=base.id,
            step=base.step + 1,
            source=CheckpointSource.UPDATE,
            delta=self._delta(folded, run, thread_id),
            pending=survivors + _new_successors(routes, survivors),
            completed=tuple(a for a in pending if a.node == as_node),
            joins=routes.joins if routes else base.joins,
            metadata=_kept_metadata(base, as_node),
            namespace=self.config.namespace,
        )
        return self.store.write(self._change(run, base, draft, as_node, actor))

    def fork(
        self,
        source: str,
        target: str,
        *,
        checkpoint_id: str | None = None,
        digest: str,
        version: str,
        definition: dict[str, Any],
        actor: str = "",
    ) -> RunRecord:
        """Copy a checkpoint of `source` to begin the lineage of `target`.

        Raises CheckpointError when there is none, ThreadBusyError when a run holds the
        target.
        """
        namespace, new_id = self.config.namespace, self.config.clock.new_id
        record = self._to_fork(source, checkpoint_id)
        run_id = new_id()
        sequence = self.store.last_sequence(target, namespace) + 1
        branch = carry_over(
            self.store,
            record,
            run_id=run_id,
            lineage=sequence,
            standing_at=sequence,
            new_id=new_id,
        )
        draft = copied_checkpoint(
            record, id=new_id(), sequence=sequence, namespace=namespace
        )
        event = Event(kind="thread.forked", data={"from": record.id, "thread": source})
        admission = Admission(
            run_id=run_id,
            thread_id=target,
            graph_id=self.blueprint.graph_id,
            graph_version=version,
            digest=digest,
            definition=definition,
            checkpoint_id=draft.id,
            delta=draft.delta,
            pending=record.pending,
            actor=actor,
            namespace=namespace,
            root_run_id=run_id,
            events=(event,),
        )
        forked = self.store.fork(
            ThreadFork(
                admission=admission,
                checkpoint=draft,
                waits=branch.waits,
                attempts=branch.attempts,
            )
        )
        fork_children(self.store, record, forked, new_id)
        return forked

    def _to_fork(self, source: str, checkpoint_id: str | None) -> CheckpointRecord:
        namespace = self.config.namespace
        record = self.store.find_checkpoint(source, checkpoint_id, namespace)
        if record is None:
            what = f"checkpoint {checkpoint_id!r}" if checkpoint_id else "checkpoint"
            raise CheckpointError(f"no {what} found on thread {source!r} to fork")
        owner = self.store.find_run(record.run_id) if record.run_id else None
        owner = owner or self.store.find_thread_run(source, namespace)
        if owner is not None:
            self._require_revision(owner)
        return record

    def _base(self, thread_id: str) -> tuple[RunRecord, CheckpointRecord]:
        namespace: Namespace = self.config.namespace
        run = self.store.find_thread_run(thread_id, namespace)
        base = self.store.find_checkpoint(thread_id, None, namespace)
        if run is None or base is None:
            raise CheckpointError(f"no checkpoint found on thread {thread_id!r}")
        self._require_revision(run)
        return run, base

    def _require_revision(self, run: RunRecord) -> None:
        if self.digest is not None and run.digest != self.digest:
            raise RevisionMismatchError(run.digest, self.digest, run.graph_id)

    def _state(self, base: CheckpointRecord) -> BaseModel:
        """The state that is edited; as it is stored where the model refuses it.

        Otherwise the one act that could mend such a state would be refused as well. The
        edited state must fit the model.
        """
        codec = self.blueprint.fold.codec
        try:
            return codec.load(base.values)
        except StateError:
            return codec.model.model_construct(**base.values)

    def _check_node(self, as_node: str | None) -> None:
        if as_node is None:
            return
        spec = self.blueprint.nodes.get(as_node)
        if spec is None:
            known = ", ".join(sorted(self.blueprint.nodes))
            raise MissingNodeError(f"as_node names {as_node!r}, the graph has {known}")
        if spec.is_command:
            raise GraphError(
                f"node {as_node!r} is command-routing and so non-resumable by a manual "
                "write: where it would go is its handler's decision"
            )

    def _fold(self, state: BaseModel, as_node: str | None, update: Any) -> Any:
        try:
            return self.blueprint.fold.fold(state, [(as_node or _MANUAL, update)])
        except FoldError as error:
            if isinstance(error.cause, StateError):
                raise error.cause from error
            what = f"{error.path}: " if error.path else ""
            text = f"{what}the update could not be folded: {error}"
            raise StateError(text, path=error.path) from error

    def _route(
        self,
        state: BaseModel,
        as_node: str | None,
        survivors: tuple[Activation, ...],
        base: CheckpointRecord,
    ) -> RoutePlan | None:
        if as_node is None:
            return None
        done = [(Activation(node=as_node), Completed())]
        try:
            return plan_routes(
                self.blueprint,
                state,
                done,
                remaining=survivors,
                joins=base.joins,
                step=base.step + 1,
            )
        except RouteError as error:
            raise GraphError(f"routing from {as_node!r} failed: {error}") from error

    def _delta(self, folded: Any, run: RunRecord, thread_id: str) -> StateDelta:
        """What is stored: every field where the write is the base of its lineage."""
        last = self.store.last_sequence(thread_id, self.config.namespace)
        if last + 1 > run.lineage:
            delta: StateDelta = folded.delta
            return delta
        codec = self.blueprint.fold.codec
        return StateDelta(changes=codec.dump(folded.state, codec.names))

    def _change(
        self,
        run: RunRecord,
        base: CheckpointRecord,
        draft: CheckpointDraft,
        as_node: str | None,
        actor: str,
    ) -> ManualWrite:
        gone = {a.id for a in draft.completed}
        waits = self.store.list_waits(run.thread_id, run.namespace)
        results = self.store.list_results(run)
        event = Event(
            kind="state.edited",
            step=draft.step,
            node=as_node,
            data={
                "checkpoint": draft.id,
                "fields": sorted({*draft.delta.changes, *draft.delta.appends}),
            },
        )
        return ManualWrite(
            run_id=run.id,
            expected_head=base.id,
            checkpoint=draft,
            closed_waits=tuple(w.id for w in waits if w.activation_id in gone),
            dropped_attempts=tuple(a.id for a in results if a.activation_id in gone),
            events=(event,),
            actor=actor,
        )


def _new_successors(
    routes: RoutePlan | None, survivors: tuple[Activation, ...]
) -> tuple[Activation, ...]:
    """Successors that are not pending already."""
    if routes is None:
        return ()
    plain = {a.node for a in survivors if a.is_plain}
    return tuple(a for a in routes.successors if not (a.is_plain and a.node in plain))


def _kept_metadata(base: CheckpointRecord, as_node: str | None) -> dict[str, Any]:
    """What the boundary below says, but for the node that the edit was made as."""
    kept = dict(base.metadata)
    failed, error = kept.get("failed_node"), kept.get("error") or {}
    # A join that could not fire is looked at again with the arrival of this node.
    if as_node is not None and (failed == as_node or error.get("kind") == "join"):
        kept.pop("failed_node", None)
        kept.pop("error", None)
    if as_node in kept.get("interrupted_nodes", ()):
        kept["interrupted_nodes"] = [
            n for n in kept["interrupted_nodes"] if n != as_node
        ]
    return kept
