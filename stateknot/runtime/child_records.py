"""Reading what the child runs of a boundary were given, and where they stood then.

A child run's metadata names its input record, so that a call which goes on later can
still tell what the child changed. In a fork, whose first record is a copy of a later
one, that record holds the input's values. Read `children.py` for the calls themselves
and `forking.py` for how they are taken along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stateknot.errors import RunError
from stateknot.kernel.limits import MAXIMUM_NAMESPACE
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import RunStatus
from stateknot.kernel.writes import Reopening
from stateknot.runtime.execution import ChildRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        Namespace,
        RunRecord,
    )
    from stateknot.kernel.state import StateCodec
    from stateknot.kernel.store import Store

INPUT = "input_checkpoint"
"""Names the input record in a child run's metadata, the input in a fork's record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingChild:
    """A child run and the checkpoint at which it stood; `call` is `1`, `2`, or none."""

    run: RunRecord
    checkpoint_id: str
    activation_id: str
    call: str


def input_values(store: Store, run: RunRecord) -> Mapping[str, Any]:
    """The state that a child run began with, as it is stored."""
    named = run.metadata.get(INPUT)
    record = store.find_checkpoint(run.thread_id, named, run.namespace)
    if record is None:
        return {}
    values: Mapping[str, Any] = record.metadata.get(INPUT, record.values)
    return values


def children_at(store: Store, record: CheckpointRecord) -> list[StandingChild]:
    """The child runs that the pending activations of `record` had made by then."""
    parent = store.find_run(record.run_id) if record.run_id else None
    if parent is None:
        parent = store.find_thread_run(record.thread_id, record.namespace)
    if parent is None:
        return []
    children = store.list_children(parent.id)
    is_head = parent.head_id == record.id and parent.lineage == record.lineage
    if is_head:
        stood = {child.id: child.head_id for child in children}
    else:
        stood = _told_by(store, record) if children else {}
    # A superstep that was put off has no boundary yet, so its activations have no ids.
    pending = {a.id for a in with_ids(record.pending, record.step + 1)}
    found = [
        _standing(child, stood[child.id])
        for child in children
        if child.id in stood and _lineage(child) == record.lineage
    ]
    return [child for child in found if child.activation_id in pending]


def ended_runs(
    store: Store, parent: RunRecord, activation_ids: Sequence[str]
) -> list[ChildRun]:
    """The child runs that these activations of `parent` brought to their end."""
    found = [
        _standing(child, child.head_id)
        for child in store.list_children(parent.id)
        if child.status is RunStatus.COMPLETED and _lineage(child) == parent.lineage
    ]
    return [
        ChildRun(
            node=node_of(child.activation_id),
            graph_id=child.run.graph_id,
            run_id=child.run.id,
            root_run_id=child.run.root_run_id,
            namespace=child.run.namespace,
            checkpoint_id=child.checkpoint_id,
        )
        for child in found
        if child.activation_id in activation_ids
    ]


def free_children(
    store: Store,
    record: CheckpointRecord,
    drops: Callable[[Iterable[AttemptRecord]], list[AttemptRecord]],
    actor: str,
) -> None:
    """Let the child runs of `record` go on with a retry, and theirs.

    Those that wait for a time wait no longer; those that failed lose the results that
    `drops` chooses. Transaction: the caller's.
    """
    for standing in children_at(store, record):
        child = standing.run
        if child.status not in (RunStatus.WAITING, RunStatus.FAILED):
            continue
        dropped = tuple(attempt.id for attempt in drops(store.list_results(child)))
        if dropped or child.status is RunStatus.WAITING:
            store.reopen(
                Reopening(
                    run_id=child.id,
                    fires_timers=child.status is RunStatus.WAITING,
                    dropped_attempts=dropped,
                    actor=actor,
                )
            )
        head = store.find_checkpoint(child.thread_id, child.head_id, child.namespace)
        if head is not None:
            free_children(store, head, drops, actor)


def _told_by(store: Store, record: CheckpointRecord) -> dict[str, str]:
    """Where each child stood that `record` or a boundary before it tells of.

    Only as far back as an activation is pending that is pending at `record`.
    """
    stood: dict[str, str] = {}
    for boundary in _boundaries(store, record):
        told: Sequence[Mapping[str, Any]] = boundary.metadata.get("child_runs", ())
        for child in told:
            stood.setdefault(child["run_id"], child["checkpoint_id"])
    return stood


def _boundaries(store: Store, record: CheckpointRecord) -> Iterator[CheckpointRecord]:
    pending = {activation.id for activation in record.pending if activation.id}
    current: CheckpointRecord | None = record
    while current is not None and pending & {a.id for a in current.pending}:
        yield current
        if current.parent_id is None:
            return
        current = store.find_checkpoint(
            record.thread_id, current.parent_id, record.namespace
        )


def _standing(child: RunRecord, checkpoint_id: str) -> StandingChild:
    name, _, call = child.namespace[-1].partition("#")
    return StandingChild(
        run=child,
        checkpoint_id=checkpoint_id,
        activation_id=name.partition("@")[0],
        call=call,
    )


def _lineage(child: RunRecord) -> int:
    """The lineage of the parent's that made the call. See `Children.segment`."""
    name = child.namespace[-1].partition("#")[0]
    return int(name.partition("@")[2] or 0)


def carried_state(
    store: Store, parent: RunRecord, node_id: str, codec: StateCodec, state: Any
) -> Any:
    """The last state of a node's calls, with what `state` sets on top.

    `state` itself where the node's calls have not come to an end in this run.
    """
    ended = [
        run
        for run in store.list_children(parent.id)
        if run.status is RunStatus.COMPLETED and node_of(run.namespace[-1]) == node_id
    ]
    if not ended:
        return state
    last = ended[-1]
    record = store.find_checkpoint(parent.thread_id, last.head_id, last.namespace)
    if record is None:
        return state
    given = codec.validate(state)
    chosen = {name: getattr(given, name) for name in given.model_fields_set}
    return codec.load(record.values).model_copy(update=chosen)


def node_of(segment: str) -> str:
    """The node in a namespace segment `step:index:node[@lineage][#call]`."""
    return segment.split(":", 2)[-1].split("@")[0].split("#")[0]


def require_same_graph(run: RunRecord, graph_id: str) -> None:
    """A call goes on with its own run: the n-th call must call the same graph."""
    if run.graph_id != graph_id:
        raise RunError(
            f"call {run.namespace[-1]!r} ran graph {run.graph_id!r} before and now "
            f"runs {graph_id!r}; let a handler call its graphs in one order"
        )


def check_length(namespace: Namespace) -> None:
    """Refuse a namespace that the stores' column does not hold."""
    length = len("/".join(namespace))
    if length > MAXIMUM_NAMESPACE:
        raise RunError(
            f"graphs nest to a namespace of {length} characters, {MAXIMUM_NAMESPACE} "
            "is the most; nest fewer levels or shorten the node ids"
        )
