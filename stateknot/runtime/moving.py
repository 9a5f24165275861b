"""Moving a run that stands still to another revision of its graph.

`plan_move` says before anything is written what would happen: which nodes are due under
which name, what is gone, whether the state fits. `draft_move` puts a plan that has no
problem into the shape that `Store.move` takes. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stateknot.errors import CheckpointError, RevisionMoveError, StateError
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.records import Event, JoinState
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import CheckpointSource
from stateknot.kernel.writes import CheckpointDraft, Move

if TYPE_CHECKING:
    from stateknot.kernel.records import CheckpointRecord, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.kernel.vocabulary import JsonValue
    from stateknot.runtime.graph import CompiledGraph

Migrate = Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What is known of the revision that a run stands on: it may have no code here."""

    nodes: frozenset[str]
    sources: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """What a move would do. It may be made while there are no `problems`.

    `renamed` are nodes that are due or joined under their new names; `removed` and
    `added` compare the revisions; `forgotten_joins` lose what had arrived at them.
    `changes` are the state's fields that the new model stores otherwise, `dropped`
    those that it has no longer. `missing` are due nodes that need an alias.
    """

    run_id: str
    thread_id: str
    from_digest: str
    to_digest: str
    renamed: Mapping[str, str]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    forgotten_joins: tuple[str, ...]
    changes: Mapping[str, JsonValue]
    dropped: tuple[str, ...]
    missing: tuple[str, ...]
    problems: tuple[str, ...]
    base: CheckpointRecord


def plan_move(
    store: Store,
    run: RunRecord,
    target: CompiledGraph,
    origin: Origin,
    *,
    aliases: Mapping[str, str] | None = None,
    migrate: Migrate | None = None,
) -> MovePlan:
    """Say what moving `run` to `target` does, and every reason why it cannot be done.

    Generated nodes of a composed graph keep their place: call-site, node and iteration
    name the node of the other revision, whatever its id is there. `migrate` turns the
    stored values into those that the new model reads.
    """
    base = store.find_checkpoint(run.thread_id, run.head_id, run.namespace)
    if base is None:
        raise CheckpointError(f"run {run.id} stands at {run.head_id}, which is missing")
    names = {**_moved_sources(origin, target), **(aliases or {})}
    here, codec = target.blueprint.nodes, target.blueprint.fold.codec
    due = [activation.node for activation in base.pending]
    renamed = {old: names[old] for old in origin.nodes if old in names}
    changes, state_problem = _changes(base, target, migrate)
    missing = tuple(n for n in dict.fromkeys(due) if names.get(n, n) not in here)
    problems = [*_refusals(run, base), *_told_missing(run, missing, target)]
    problems += [
        f"alias {old!r} leads to {new!r}, which the revision has not"
        for old, new in (aliases or {}).items()
        if new not in here
    ]
    return MovePlan(
        run_id=run.id,
        thread_id=run.thread_id,
        from_digest=run.digest,
        to_digest=target.digest,
        renamed={old: new for old, new in sorted(renamed.items()) if new in here},
        removed=tuple(sorted(origin.nodes - here.keys() - renamed.keys())),
        added=tuple(sorted(here.keys() - origin.nodes - set(renamed.values()))),
        forgotten_joins=_forgotten(base.joins, names, target),
        changes=changes,
        dropped=tuple(sorted(base.values.keys() - set(codec.names))),
        missing=missing,
        problems=(*problems, *state_problem),
        base=base,
    )


def draft_move(
    store: Store,
    plan: MovePlan,
    run: RunRecord,
    target: CompiledGraph,
    *,
    actor: str,
) -> Move:
    """What making the move stores. Raises RevisionMoveError for one with problems."""
    if plan.problems:
        raise RevisionMoveError(
            run_id=run.id,
            thread_id=run.thread_id,
            expected=plan.from_digest,
            found=plan.to_digest,
            problems=plan.problems,
        )
    data = {
        "from": plan.from_digest,
        "to": plan.to_digest,
        "renamed": dict(plan.renamed),
        "fields": sorted(plan.changes),
        "dropped": list(plan.dropped),
    }
    return Move(
        run_id=run.id,
        expected_head=run.head_id,
        digest=target.digest,
        graph_version=target.version,
        definition=target.definition.to_dict(),
        source_map=target.blueprint.source_map,
        checkpoint=_draft(store, plan, run, target),
        events=(Event(kind="run.moved", data=data),),
        actor=actor,
    )


def _moved_sources(origin: Origin, target: CompiledGraph) -> dict[str, str]:
    """Generated ids of `origin` and the ids of the same places in `target`."""
    there = {
        (source["call_site"], source["node_id"], source["iteration"]): node_id
        for node_id, source in target.blueprint.source_map.items()
    }
    found = {}
    for node_id, source in origin.sources.items():
        place = (source["call_site"], source["node_id"], source["iteration"])
        if place in there and there[place] != node_id:
            found[node_id] = there[place]
    return found


def _refusals(run: RunRecord, base: CheckpointRecord) -> list[str]:
    if run.parent_run_id is not None:
        return [f"it is a child of run {run.parent_run_id}; move that one"]
    if not base.pending:
        return [f"nothing is due at checkpoint {base.id}: it has ended"]
    return []


def _told_missing(
    run: RunRecord, missing: tuple[str, ...], target: CompiledGraph
) -> list[str]:
    known = ", ".join(sorted(target.blueprint.nodes))
    return [
        f"node {node!r} is due on thread {run.thread_id!r} and is not in revision "
        f"{target.digest}, which has {known}; give an alias for it"
        for node in missing
    ]


def _changes(
    base: CheckpointRecord, target: CompiledGraph, migrate: Migrate | None
) -> tuple[dict[str, JsonValue], list[str]]:
    """The fields that the new model stores otherwise, or why it refuses the state."""
    values: Mapping[str, JsonValue] = dict(base.values)
    codec = target.blueprint.fold.codec
    try:
        if migrate is not None:
            values = migrate(dict(values))
        state = codec.load(values)
        stored = codec.dump(state, codec.names)
    except StateError as error:
        return {}, [f"the state at checkpoint {base.id} does not fit: {error}"]
    return {k: v for k, v in stored.items() if base.values.get(k, ...) != v}, []


def _forgotten(
    joins: JoinState, names: Mapping[str, str], target: CompiledGraph
) -> tuple[str, ...]:
    waiting = target.blueprint.waiting
    known = {*joins.arrivals, *joins.withheld}
    return tuple(sorted(j for j in known if names.get(j, j) not in waiting))


def _draft(
    store: Store, plan: MovePlan, run: RunRecord, target: CompiledGraph
) -> CheckpointDraft | None:
    """A checkpoint with the new names and fields; None where the head can stand.

    Activations keep the ids that their answers and results are bound to.
    """
    base, names = plan.base, plan.renamed
    pending = tuple(
        replace(activation, node=names.get(activation.node, activation.node))
        for activation in with_ids(base.pending, base.step + 1)
    )
    joins = _renamed_joins(base.joins, names)
    is_same = [a.node for a in pending] == base.next_nodes and joins == base.joins
    if is_same and not plan.changes and not plan.dropped:
        return None
    sequence = store.last_sequence(run.thread_id, run.namespace) + 1
    delta = StateDelta(changes=dict(plan.changes), drops=plan.dropped)
    if sequence == run.lineage:  # its base record, which holds every field
        delta = StateDelta(changes=delta.apply(base.values))
    return CheckpointDraft(
        id=target.config.clock.new_id(),
        sequence=sequence,
        lineage=run.lineage,
        parent_id=base.id,
        step=base.step + 1,
        source=CheckpointSource.UPDATE,
        delta=delta,
        pending=pending,
        joins=joins,
        metadata=_renamed_metadata(base.metadata, names),
        namespace=run.namespace,
    )


def _renamed_joins(joins: JoinState, names: Mapping[str, str]) -> JoinState:
    return JoinState(
        arrivals={
            names.get(join, join): tuple(names.get(n, n) for n in arrived)
            for join, arrived in joins.arrivals.items()
        },
        withheld={names.get(j, j): args for j, args in joins.withheld.items()},
    )


def _renamed_metadata(
    metadata: Mapping[str, JsonValue], names: Mapping[str, str]
) -> dict[str, JsonValue]:
    kept = dict(metadata)
    if "failed_node" in kept:
        kept["failed_node"] = names.get(kept["failed_node"], kept["failed_node"])
    if "interrupted_nodes" in kept:
        asked = kept["interrupted_nodes"]
        kept["interrupted_nodes"] = [names.get(node, node) for node in asked]
    return kept
