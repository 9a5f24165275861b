"""Which code the children of a run need, and refusing to go on without it.

A child run is pinned to its revision like any other. Where the graph that would call it
has other code, the revision of the registry drives it; if there is none, the parent is
left to a process that has it. `require_child_code` finds that out before a run is
claimed or reopened, as far as nodes name their graphs. What a handler calls by hand is
only known at the call: see Note [How a child stops its parent] for `ChildOfOtherCode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.errors import RevisionMismatchError
from stateknot.kernel.vocabulary import RunStatus
from stateknot.registry import find_graph
from stateknot.runtime.child_records import children_at, node_of

if TYPE_CHECKING:
    from stateknot.kernel.records import CheckpointRecord, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.child_records import StandingChild
    from stateknot.runtime.graph import CompiledGraph


def pinned_child(graph: CompiledGraph, run: RunRecord) -> CompiledGraph:
    """The code for a child run that `graph` is called for.

    Raises RevisionMismatchError when neither `graph` nor the registry has it.
    """
    if run.digest == graph.digest:
        return graph
    registered = find_graph(run.graph_id, digest=run.digest)
    if registered is None:
        raise RevisionMismatchError(
            run.digest, graph.digest, run.graph_id, run.thread_id
        )
    return registered.configured(graph.config)


def require_child_code(
    store: Store, graph: CompiledGraph, record: CheckpointRecord | None
) -> None:
    """Refuse when a child, of any level, that goes on from `record` has no code here.

    Raises RevisionMismatchError with the child's digest and the one of this process. A
    call that ended needs none: what it gave is remembered.
    """
    if record is None or not any(
        hosted_graph(graph, activation.node) for activation in record.pending
    ):
        return
    for child in children_at(store, record):
        hosted = hosted_graph(graph, node_of(child.activation_id))
        if hosted is None or _is_over(child) or child.run.graph_id != hosted.graph_id:
            continue
        code = pinned_child(hosted, child.run)
        head = store.find_checkpoint(
            child.run.thread_id, child.checkpoint_id, child.run.namespace
        )
        require_child_code(store, code, head)


def hosts_children(graph: CompiledGraph) -> bool:
    """Whether a node of `graph` says which graph it runs."""
    return any(hosted_graph(graph, node) for node in graph.blueprint.nodes)


def hosted_graph(graph: CompiledGraph, node_id: str) -> CompiledGraph | None:
    """The graph that a node runs as its child; None where only its handler knows."""
    spec = graph.blueprint.nodes.get(node_id)
    hosted = getattr(spec.handler, "hosted", None) if spec is not None else None
    return hosted() if callable(hosted) else None


def _is_over(child: StandingChild) -> bool:
    """Whether the call had come to its end where the child stood."""
    run = child.run
    return run.status is RunStatus.COMPLETED and run.head_id == child.checkpoint_id
