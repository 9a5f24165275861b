"""How runs begin and how they go on: admission, resume, retry, answers.

Each function reads what stands, lets the kernel decide, and writes inside the caller's
`store.atomic()`. None of them drives: `graph.py` (in the caller's process) and the
worker do, with the fence that a claim gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stateknot.errors import (
    AlreadyAnsweredError,
    GraphError,
    MissingNodeError,
    ResumeError,
    RevisionMismatchError,
    ValidationError,
)
from stateknot.kernel.commands import Command, ResumeTarget
from stateknot.kernel.once import droppable
from stateknot.kernel.outcome import to_json_value
from stateknot.kernel.records import Activation, Event, WaitRecord
from stateknot.kernel.routing import with_ids
from stateknot.kernel.vocabulary import (
    END,
    START,
    UNSET,
    CheckpointSource,
    RunStatus,
    WaitKind,
    WaitStatus,
)
from stateknot.kernel.writes import Admission, Reopening
from stateknot.runtime.answers import check_answer
from stateknot.runtime.branching import Branch, carry_over
from stateknot.runtime.child_records import free_children
from stateknot.runtime.execution import open_questions
from stateknot.runtime.forking import fork_children

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.commands import GraphInput
    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.records import CheckpointRecord, Namespace, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import RunConfig


DEADLINE = "(deadline)"
"""The actor of an answer that nobody gave in time."""


def plan_inputs(
    blueprint: Blueprint, inputs: Sequence[GraphInput] | None
) -> tuple[Activation, ...]:
    """The first active list: the entry, or one activation per input, never merged.

    Raises GraphError for an input that targets END, an unknown node, or no input.
    """
    if inputs is None:
        return tuple(Activation(node=node) for node in blueprint.entry)
    if not inputs:
        raise ValidationError("no inputs were given; leave them out to enter at START")
    return tuple(a for item in inputs for a in _activations(blueprint, item))


def _activations(blueprint: Blueprint, item: GraphInput) -> list[Activation]:
    arg = item.payload
    if arg is not UNSET:
        arg = to_json_value(arg, f"the input for {item.target!r}")
    if item.target == END:
        raise GraphError("an input cannot target END: nothing would run")
    if item.target == START:
        return [Activation(node=node, arg=arg) for node in blueprint.entry]
    if item.target not in blueprint.nodes:
        known = ", ".join(sorted(blueprint.nodes))
        raise MissingNodeError(
            f"an input names node {item.target!r}, the graph has {known}"
        )
    return [Activation(node=item.target, arg=arg)]


def draft_admission(
    blueprint: Blueprint,
    definition: GraphDefinition,
    config: RunConfig,
    state: Any,
    *,
    thread_id: str | None = None,
    inputs: Sequence[GraphInput] | None = None,
    step_limit: int | None = None,
    actor: str = "",
    metadata: dict[str, Any] | None = None,
    priority: int = 0,
) -> Admission:
    """Everything that admitting a run stores; a missing thread id is made up here.

    Raises SubAgentDepthError for a run that would be a level too deep.
    """
    config.policy.require_depth(config.frames)
    pending = plan_inputs(blueprint, inputs)
    folded = blueprint.fold.initial(state)
    run_id = config.clock.new_id()
    parent = config.frames[-1] if config.frames else None
    return Admission(
        run_id=run_id,
        thread_id=thread_id or config.clock.new_id(),
        graph_id=blueprint.graph_id,
        graph_version=blueprint.version,
        digest=definition.digest,
        definition=definition.to_dict(),
        checkpoint_id=config.clock.new_id(),
        delta=folded.delta,
        pending=pending,
        step_limit=step_limit,
        actor=actor,
        metadata=metadata or {},
        namespace=config.namespace,
        parent_run_id=parent.run_id if parent else None,
        root_run_id=config.frames[0].run_id if config.frames else run_id,
        priority=priority,
        source_map=blueprint.source_map,
        events=(Event(kind="run.admitted", data={"run_id": run_id}),),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The checkpoint that a run goes on from, and what belongs to it there."""

    run: RunRecord
    record: CheckpointRecord
    branch: Branch | None
    questions: tuple[WaitRecord, ...]


def find_standing(
    store: Store, thread_id: str, target: ResumeTarget, config: RunConfig
) -> Standing:
    """Where `thread_id` would go on. Raises ResumeError naming what is missing."""
    namespace = config.namespace
    current = store.find_thread_run(thread_id, namespace)
    named = target.checkpoint_id
    record = store.find_checkpoint(thread_id, named, namespace) if current else None
    if current is None or record is None:
        what = f"checkpoint {named!r}" if named else "checkpoint"
        raise ResumeError(f"no {what} found on thread {thread_id!r}")
    owner = store.find_run(record.run_id) if record.run_id else current
    run = owner or current
    last = store.last_sequence(thread_id, namespace)
    # A branch that was begun and has no record of its own yet is gone on with: its
    # questions and answers are there already, and another would leave them behind.
    is_begun = run.lineage == last + 1
    if record.id == run.head_id and (record.sequence == last or is_begun):
        waits = store.list_waits(thread_id, namespace)
        questions = tuple(open_questions(record, waits))
        return Standing(run=run, record=record, branch=None, questions=questions)
    branch = carry_over(
        store,
        record,
        run_id=run.id,
        lineage=last + 1,
        standing_at=record.sequence,
        new_id=config.clock.new_id,
    )
    questions = tuple(w for w in branch.waits if w.status is WaitStatus.OPEN)
    return Standing(run=run, record=record, branch=branch, questions=questions)


def reopen(
    store: Store,
    standing: Standing,
    command: Command,
    config: RunConfig,
    *,
    digest: str | None,
    step_limit: int | None = None,
    is_forced: bool = False,
    reuse_results: bool = True,
    rerun_unknown: bool = False,
    actor: str = "",
) -> RunRecord:
    """Make a run pending again, with the answers that `command` brings.

    `is_forced` runs it now although it waits for a timer or a retry. Without
    `reuse_results` siblings that finished run again as well, and with `rerun_unknown`
    at-most-once nodes that were lost: what is thrown away `droppable` says.
    Transaction: the caller's. Raises ResumeError when nothing is pending, when an
    answer fits no open question, or when it does not fit the question's schema;
    StaleCheckpointError when the run went on since; RevisionMismatchError when the
    graph here is not the run's.
    """
    _require_reopenable(standing, digest)
    run, record = standing.run, standing.record
    answers = pair_answers(store, standing, command)
    branch = standing.branch
    if not is_forced and not answers and branch is None:
        _require_due(store, run)
    waits = branch.waits if branch else ()
    values = _handed_values(standing, command, config) if not answers else ()
    drops = partial(
        droppable,
        reuse_results=reuse_results,
        is_forced=is_forced,
        rerun_unknown=rerun_unknown,
    )
    carried = branch.attempts if branch else ()
    dropped = {attempt.id for attempt in drops(carried)}
    reopening = Reopening(
        run_id=run.id,
        expected_head=run.head_id,
        head_id=record.id if branch else None,
        lineage=branch.lineage if branch else None,
        step_limit=step_limit,
        fires_timers=is_forced and run.status is RunStatus.WAITING,
        actor=actor,
        waits=(*waits, *values),
        attempts=tuple(a for a in carried if a.id not in dropped),
        dropped_attempts=tuple(a.id for a in drops(store.list_results(run))),
        events=(Event(kind="run.reopened", data={"checkpoint": record.id}),),
    )
    reopened = store.reopen(reopening)
    if branch is not None:
        fork_children(store, record, reopened, config.clock.new_id)
    if is_forced:
        free_children(store, record, drops, actor)
    for wait, value in answers:
        store.answer(wait.id, value, actor=actor)
    return reopened


def _require_reopenable(standing: Standing, digest: str | None) -> None:
    run, record = standing.run, standing.record
    if not record.pending and not _is_emptied_by_hand(standing):
        raise ResumeError(
            f"checkpoint {record.id} of thread {run.thread_id!r} has no pending nodes "
            "to resume; start a new run or resume from an earlier checkpoint"
        )
    if run.is_to_be_cancelled:
        raise ResumeError(f"run {run.id} was cancelled; start a new run")
    if digest is not None and digest != run.digest:
        raise RevisionMismatchError(run.digest, digest, run.graph_id)


def _is_emptied_by_hand(standing: Standing) -> bool:
    """Whether an edit left a run nothing to do but to end."""
    is_edit = standing.record.source is CheckpointSource.UPDATE
    return is_edit and standing.run.status is not RunStatus.COMPLETED


def _require_due(store: Store, run: RunRecord) -> None:
    if run.status is not RunStatus.WAITING or run.wake_at is None:
        return
    if run.wake_at > store.now():
        raise ResumeError(
            f"run {run.id} waits until {run.wake_at.isoformat()}; it goes on by itself "
            "then, and retry runs it now"
        )


def answer_due(store: Store, thread_id: str, namespace: Namespace = ()) -> int:
    """Give questions whose deadline has passed their default answer; how many.

    Transaction: the caller's. Idempotent: an answered question is left alone.
    """
    due = [
        wait
        for wait in store.list_waits(thread_id, namespace)
        if wait.status is WaitStatus.OPEN
        and wait.kind is WaitKind.INTERRUPT
        and wait.due_at is not None
    ]
    if not due:
        return 0
    now = store.now()
    passed = [wait for wait in due if wait.due_at is not None and wait.due_at <= now]
    for wait in passed:
        store.answer(wait.id, wait.default, actor=DEADLINE)
    return len(passed)


def pair_answers(
    store: Store, standing: Standing, command: Command
) -> list[tuple[WaitRecord, Any]]:
    """The open questions with the answers that `command` gives them, checked.

    A bare value answers the deciding (first) question.
    """
    pairs: list[tuple[WaitRecord, Any]] = []
    questions = standing.questions
    by_id = {wait.public_id: wait for wait in questions}
    for wait_id, value in (command.answers or {}).items():
        if wait_id not in by_id:
            raise _no_question(store, standing, wait_id)
        pairs.append((by_id[wait_id], value))
    if command.resume is not UNSET and questions:
        pairs.append((questions[0], command.resume))
    elif command.resume is not UNSET:
        _require_unanswered(store, standing)
    return [(wait, check_answer(wait, value)) for wait, value in pairs]


def _require_unanswered(store: Store, standing: Standing) -> None:
    """Refuse a value that comes behind another which no drive has handed over yet.

    Of a double click, or of an answer behind the default, the later would win.
    """
    if standing.branch is not None:
        return
    run = standing.run
    pending = with_ids(standing.record.pending, standing.record.step + 1)
    due = {activation.id for activation in pending}
    gates = {name for activation in pending for name in activation.after}
    is_going = run.status in (RunStatus.PENDING, RunStatus.RUNNING)
    for wait in store.list_waits(run.thread_id, run.namespace):
        is_mine = wait.activation_id in due or wait.public_id in gates
        is_first = wait.kind is WaitKind.INTERRUPT or is_going
        if is_mine and is_first and wait.status is WaitStatus.ANSWERED:
            who = f" by {wait.answered_by}" if wait.answered_by else ""
            raise AlreadyAnsweredError(
                f"thread {run.thread_id!r} was answered{who}, and run {run.id} is "
                f"{run.status}; its first answer is kept"
            )


def _no_question(store: Store, standing: Standing, wait_id: str) -> ResumeError:
    """The error for an id that is not open: answered already, or never asked."""
    found = store.find_question(standing.run.thread_id, wait_id)
    if found is not None:
        who = f" by {found.answered_by}" if found.answered_by else ""
        return AlreadyAnsweredError(
            f"question {wait_id!r} is {found.status}{who}; its first answer is kept"
        )
    open_ids = ", ".join(wait.public_id for wait in standing.questions) or "none"
    return ResumeError(f"no open question {wait_id!r}; open: {open_ids}")


def _handed_values(
    standing: Standing, command: Command, config: RunConfig
) -> tuple[WaitRecord, ...]:
    """A value for a boundary that asked nothing: each of its activations gets it.

    Successors that never ran have no id yet; they are given the one that the drive will
    give them, which depends on the record alone.
    """
    if command.resume is UNSET or standing.questions:
        return ()
    value = to_json_value(command.resume, "the resume value")
    lineage = standing.branch.lineage if standing.branch else standing.run.lineage
    return tuple(
        WaitRecord(
            id=config.clock.new_id(),
            activation_id=activation.id,
            node_id=activation.node,
            kind=WaitKind.VALUE,
            status=WaitStatus.ANSWERED,
            lineage=lineage,
            sequence=standing.record.sequence,
            answer=value,
            namespace=standing.record.namespace,
        )
        for activation in with_ids(standing.record.pending, standing.record.step + 1)
    )


__all__ = [
    "Standing",
    "draft_admission",
    "find_standing",
    "pair_answers",
    "plan_inputs",
    "reopen",
]
