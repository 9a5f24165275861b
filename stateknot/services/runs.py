"""Starting, resuming and retrying runs on the workers.

Each verb stores what it decides and the wake-up in one transaction, which may be the
caller's: if that rolls back, neither the run nor the wake-up ever was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError

from stateknot.errors import (
    NotFoundError,
    ResumeError,
    ThreadBusyError,
)
from stateknot.kernel.commands import Command, ResumeTarget
from stateknot.kernel.outcome import to_json_value
from stateknot.kernel.vocabulary import UNSET, RunStatus
from stateknot.models import Run
from stateknot.registry import get_graph
from stateknot.runtime.admission import (
    Standing,
    answer_due,
    draft_admission,
    find_standing,
    pair_answers,
    reopen,
)
from stateknot.runtime.config import RunConfig
from stateknot.runtime.waking import wake
from stateknot.services.actors import actor_name
from stateknot.services.busy import require_on_busy, supersede
from stateknot.services.idempotency import (
    check_request,
    find_started,
    request_digest,
)
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.revisions import activate_revision
from stateknot.storage.rows import as_key, as_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stateknot.kernel.commands import GraphInput
    from stateknot.kernel.records import RunRecord
    from stateknot.kernel.writes import Admission


GOING = frozenset({RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING})


def start_run(
    graph_id: str,
    state: Any,
    *,
    thread_id: str | None = None,
    inputs: Sequence[GraphInput] | None = None,
    idempotency_key: str | None = None,
    on_busy: str = "reject",
    priority: int = 0,
    metadata: Mapping[str, Any] | None = None,
    version: str | None = None,
    actor: Any = None,
) -> Run:
    """Admit a run of a registered graph and wake a worker for it.

    Transaction: its own, or the caller's. Idempotent for one `idempotency_key`: the
    same start again gives the same run. Raises NotFoundError for an unknown graph,
    StateError for a state that does not fit, ThreadBusyError while another run holds
    the thread, RunError for a key that was used for another start.

    `on_busy` says what becomes of a start on a thread that another run holds:
    `"reject"` raises, `"enqueue"` lets it begin behind that run and those that wait
    already, `"supersede"` cancels that run and then does the same.
    """
    require_on_busy(on_busy)
    check_request(thread_id, idempotency_key, priority)
    graph = get_graph(graph_id, version=version)
    store = DjangoCheckpointer()
    admission = draft_admission(
        graph.blueprint,
        graph.definition,
        graph.config,
        state,
        thread_id=thread_id,
        inputs=inputs,
        actor=actor_name(actor),
        metadata=to_json_value(dict(metadata or {}), "metadata"),
        priority=priority,
    )
    digest = request_digest(admission, thread_id, version)
    try:
        is_default = version is None
        admit = _ADMITS[on_busy]
        return _admit_once(
            store, admission, idempotency_key, digest, is_default, admit=admit
        )
    except (IntegrityError, ThreadBusyError):
        # A start under the same key may have committed since it was looked for.
        earlier = find_started(graph_id, idempotency_key, digest, store.using)
        if earlier is None:
            raise
        return earlier


def _admit_once(
    store: DjangoCheckpointer,
    admission: Admission,
    key: str | None,
    digest: bytes,
    is_default: bool,
    *,
    admit: Callable[[DjangoCheckpointer, Admission], RunRecord],
) -> Run:
    with store.atomic():
        earlier = find_started(admission.graph_id, key, digest, store.using)
        if earlier is not None:
            return earlier
        run = admit(store, admission)
        if is_default:
            activate_revision(admission.digest, store.using)
        rows = Run.objects.using(store.using).filter(id=admission.run_id)
        rows.update(
            idempotency_key=key or "",
            request_digest=digest if key else b"",
        )
        if not run.is_queued:
            wake(admission.run_id)
    return rows.get()


_ADMITS: dict[str, Callable[[DjangoCheckpointer, Admission], RunRecord]] = {
    "reject": DjangoCheckpointer.admit,
    "enqueue": DjangoCheckpointer.enqueue,
    "supersede": supersede,
}


def resume_run(
    thread_id: str,
    value: Any = UNSET,
    *,
    interrupt_id: str | None = None,
    checkpoint_id: str | None = None,
    step_limit: int | None = None,
    actor: Any = None,
) -> Run:
    """Answer a question of a thread, or go on from a checkpoint, and wake a worker.

    Without `interrupt_id` the value answers the deciding question. Raises ResumeError
    when there is nothing to resume, no such question, or the answer does not fit;
    AlreadyAnsweredError for an answered question; ThreadBusyError while another run
    holds the thread.
    """
    answers = None if interrupt_id is None else {interrupt_id: value}
    if interrupt_id is not None and value is UNSET:
        raise ResumeError(f"question {interrupt_id!r} was named without an answer")
    command = Command(answers=answers) if answers is not None else Command(resume=value)
    return _go_on(
        thread_id, command, ResumeTarget(checkpoint_id), step_limit, actor_name(actor)
    )


def retry_run(
    thread_id: str,
    *,
    step_limit: int | None = None,
    reuse_results: bool = True,
    rerun_unknown: bool = False,
    actor: Any = None,
) -> Run:
    """Run again what failed on a thread, from its newest checkpoint.

    A run that waits for a timer or a retry is run now. Without `reuse_results` siblings
    that finished run again as well, but for transactional and at-most-once ones. An
    at-most-once node of which nobody can tell whether it acted runs again only with
    `rerun_unknown`.
    """
    return _go_on(
        thread_id,
        Command(),
        ResumeTarget.latest(),
        step_limit,
        actor_name(actor),
        is_forced=True,
        reuse_results=reuse_results,
        rerun_unknown=rerun_unknown,
    )


def _go_on(
    thread_id: str,
    command: Command,
    target: ResumeTarget,
    step_limit: int | None,
    actor: str,
    *,
    is_forced: bool = False,
    reuse_results: bool = True,
    rerun_unknown: bool = False,
) -> Run:
    store = DjangoCheckpointer()
    with store.atomic():
        # Locked before it is read, so that of two answers at once one is refused.
        _lock_thread(thread_id, store.using)
        answer_due(store, thread_id)
        standing = find_standing(store, thread_id, target, RunConfig())
        rows = Run.objects.using(store.using).filter(id=standing.run.id)
        if _is_going(standing, target) and _answer_only(
            store, standing, command, actor
        ):
            return rows.get()
        reopen(
            store,
            standing,
            command,
            RunConfig(),
            digest=None,
            step_limit=step_limit,
            is_forced=is_forced,
            reuse_results=reuse_results,
            rerun_unknown=rerun_unknown,
            actor=actor,
        )
        wake(standing.run.id)
    return rows.get()


def lock_run(run_id: str, using: str) -> None:
    """Let nobody else act on a run until the transaction ends."""
    uuid = as_uuid(run_id)
    rows = Run.objects.using(using).filter(id__in=[uuid] if uuid else [])
    list(rows.select_for_update(of=("self",)).values_list("id"))


def _lock_thread(thread_id: str, using: str) -> None:
    runs = Run.objects.using(using).filter(current_of__key=as_key(thread_id))
    list(runs.select_for_update(of=("self",)).values_list("id"))


def _is_going(standing: Standing, target: ResumeTarget) -> bool:
    """Whether the run goes on anyway: then an answer is stored and nothing reopened."""
    return standing.run.status in GOING and target.checkpoint_id is None


def _answer_only(
    store: DjangoCheckpointer, standing: Standing, command: Command, actor: str
) -> bool:
    """Store the answers that `command` brings; False when it brings none."""
    pairs = pair_answers(store, standing, command)
    for wait, value in pairs:
        store.answer(wait.id, value, actor=actor)
    return bool(pairs)


def require_run(run_id: str) -> Run:
    """The run's row. Raises NotFoundError."""
    store = DjangoCheckpointer()
    record = store.find_run(run_id)
    if record is None:
        raise NotFoundError(f"no run {run_id!r}")
    return Run.objects.using(store.using).get(id=record.id)
