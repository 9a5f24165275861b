"""Reading what the child runs of a boundary were given, and where they stood then.

A child run's metadata names its input record, so that a call which goes on later can
still tell what the child changed. In a fork, whose first record is a copy of a later
one, that record holds the input's values. Read `children.py` for the calls themselves
and `forking.py` for how they are taken along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from stateknot.kernel.records import CheckpointRecord, RunRecord
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
    pending = {activation.id for activation in record.pending if activation.id}
    found = [
        _standing(child, stood[child.id])
        for child in children
        if child.id in stood and _lineage(child) == record.lineage
    ]
    return [child for child in found if child.activation_id in pending]


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
