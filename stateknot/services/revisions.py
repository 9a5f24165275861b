"""Moving runs between revisions of their graph: on purpose, checked and journalled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import StaleCheckpointError
from stateknot.kernel.profile import decode
from stateknot.kernel.vocabulary import RunStatus
from stateknot.registry import get_graph
from stateknot.runtime.moving import MovePlan, Origin, draft_move
from stateknot.runtime.moving import plan_move as plan_at
from stateknot.runtime.waking import wake
from stateknot.services.actors import actor_name
from stateknot.services.runs import lock_run, require_run
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.rows import run_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.records import RunRecord
    from stateknot.models import Run
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.moving import Migrate


def plan_move(
    run_id: str,
    digest: str | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
    migrate: Migrate | None = None,
) -> MovePlan:
    """Say what moving a run to the revision `digest` would do, and write nothing.

    Without a digest it is the revision that this process begins new runs on. The plan's
    `problems` name every reason why it cannot be done. Raises NotFoundError for an
    unknown run, or a revision that this process has no code for.
    """
    store = DjangoCheckpointer()
    return _planned(store, run_id, digest, aliases, migrate)[0]


def move_run(
    run_id: str,
    digest: str | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
    migrate: Migrate | None = None,
    expected_checkpoint_id: str | None = None,
    actor: Any = None,
) -> Run:
    """Pin a run that is not being driven to another revision of its graph.

    `aliases` give the new names of nodes, `migrate` turns the stored values into those
    that the new model reads. The run stays as it stands, paused, failed or due; for one
    that is due a worker is woken. Transaction: its own, or the caller's. Raises
    RevisionMoveError with all that stands against it, ThreadBusyError while the run is
    driven, StaleCheckpointError when it does not stand at the expected checkpoint,
    NotFoundError.
    """
    store = DjangoCheckpointer()
    with store.atomic():
        lock_run(run_id, store.using)
        plan, run, target = _planned(store, run_id, digest, aliases, migrate)
        if expected_checkpoint_id not in (None, run.head_id):
            raise StaleCheckpointError(
                thread_id=run.thread_id,
                expected=str(expected_checkpoint_id),
                found=run.head_id,
            )
        if run.digest != target.digest:
            store.move(draft_move(store, plan, run, target, actor=actor_name(actor)))
            if run.status is RunStatus.PENDING:
                wake(run.id)
    return require_run(run_id)


def _planned(
    store: DjangoCheckpointer,
    run_id: str,
    digest: str | None,
    aliases: Mapping[str, str] | None,
    migrate: Migrate | None,
) -> tuple[MovePlan, RunRecord, CompiledGraph]:
    row = require_run(run_id)
    run = run_record(row, row.thread.key, row.revision.digest)
    target = get_graph(run.graph_id, digest=digest)
    definition, sources = row.revision.definition, row.revision.source_map
    origin = Origin(
        nodes=frozenset(node["node_id"] for node in decode(definition)["nodes"]),
        sources={} if sources is None else decode(sources),
    )
    plan = plan_at(store, run, target, origin, aliases=aliases, migrate=migrate)
    return plan, run, target
