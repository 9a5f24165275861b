"""What goes out: the JSON forms of graphs, runs, checkpoints, questions, the journal.

Pydantic models, so that the OpenAPI document and the answers cannot differ. The
commands' `--json` prints the same shapes. Projecting rows into them is `projection.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """A JSON object that goes out."""

    model_config = ConfigDict(frozen=True)


class Graph(Shape):
    """A graph revision that this process has the code of."""

    graph: str
    name: str
    version: str
    digest: str
    is_newest: bool = Field(description="Whether new runs begin on it.")
    nodes: list[str]


class Revision(Shape):
    """A graph revision that this process or the database knows."""

    graph: str
    version: str
    digest: str
    is_registered: bool = Field(description="Whether this process has its code.")
    state: str | None = Field(
        description="`active`, `draining` or `retired`; null where nothing was started."
    )


class RevisionDetail(Revision):
    """A revision with its definition, of which the digest is made."""

    definition: dict[str, Any]
    topology: dict[str, Any] | None = Field(
        description="Nodes and how they follow each other; null without the code."
    )


class Run(Shape):
    """A run: one admission on a thread, to its end."""

    id: str
    graph: str
    version: str
    digest: str
    thread_id: str
    status: str
    parent_run_id: str | None = Field(description="The run within which it runs.")
    root_run_id: str
    checkpoint_id: str = Field(description="Its newest checkpoint.")
    steps: int = Field(description="Supersteps counted against `step_limit`.")
    step_limit: int | None
    failed_node: str | None
    error: dict[str, Any] | None = Field(
        description="What ended it: `code`, `message`, for a node more. In lists "
        "without its traceback."
    )
    output: Any = None
    metadata: dict[str, Any]
    actor: str = Field(description="Who started it.")
    is_queued: bool = Field(
        description="Whether it waits for its thread, and so has no checkpoint yet."
    )
    cancel_requested_at: datetime | None = Field(
        description="When somebody asked to cancel it. It has ended once its status "
        "says so."
    )
    cancel_reason: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class MovePlan(Shape):
    """What moving a run to another revision of its graph does, or why it cannot be.

    Of the state it names fields, never their values.
    """

    run_id: str
    thread_id: str
    from_digest: str
    to_digest: str
    renamed: dict[str, str] = Field(description="New names of nodes by the old ones.")
    removed: list[str] = Field(description="Nodes that the revision has no longer.")
    added: list[str]
    missing: list[str] = Field(
        description="Nodes that are due and not in the revision; give an alias."
    )
    forgotten_joins: list[str] = Field(
        description="Joins that lose what had arrived at them."
    )
    changed_fields: list[str] = Field(
        description="Fields of the state that get another value: a default, a new form."
    )
    dropped_fields: list[str] = Field(
        description="Fields that the revision's state has no longer."
    )
    problems: list[str] = Field(description="All that stands against the move.")


class Moved(Shape):
    """A move, or with `dry_run` what it would be."""

    is_moved: bool
    plan: MovePlan
    run: Run


class Question(Shape):
    """An open question to a person."""

    id: str
    node: str
    key: str | None
    payload: Any
    answer_schema: dict[str, Any] | None = Field(
        description="JSON Schema of an acceptable answer; null admits anything."
    )


class AskedQuestion(Shape):
    """A question with who asked it, where and when; not how it was answered."""

    id: str
    interrupt_id: str = Field(description="The id under which its thread lists it.")
    thread_id: str
    run_id: str
    graph: str
    node: str
    key: str | None
    payload: Any
    answer_schema: dict[str, Any] | None = Field(
        description="JSON Schema of an acceptable answer; null admits anything."
    )
    status: str
    asked_at: datetime
    due_at: datetime | None = Field(description="When its default is taken.")
    answered_at: datetime | None
    answered_by: str | None


class Checkpoint(Shape):
    """The state at a boundary, and what was due there."""

    thread_id: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    run_id: str | None
    step: int
    source: str
    state: dict[str, Any] = Field(
        description="Secret fields are masked; all fields are where the graph's code "
        "is not in this process, since it alone knows the secret ones."
    )
    state_error: str | None = Field(
        description="Why the state does not fit the graph's model here, if so."
    )
    next_nodes: list[str]
    questions: list[Question]
    failed_node: str | None
    error: Any = None
    created_at: datetime


class Thread(Checkpoint):
    """A thread at its newest checkpoint, whose id is the answer's ETag."""

    graph: str
    run: Run


class ThreadItem(Shape):
    """A thread and the run that stands on it."""

    thread_id: str
    graph: str
    created_at: datetime
    run: Run | None


class Edited(Shape):
    """The checkpoint that an edit wrote; its id is the answer's ETag."""

    thread_id: str
    checkpoint_id: str
    parent_checkpoint_id: str | None
    step: int
    created_at: datetime


class Event(Shape):
    """One thing that happened; `data` holds the facts of its kind."""

    kind: str
    step: int | None
    node: str | None
    data: dict[str, Any]


class JournalEntry(Shape):
    """A row of a run's journal: the events of a boundary, or what came between."""

    number: int
    first_event: int
    checkpoint_id: str | None
    actor: str
    recorded_at: datetime
    events: list[Event]


class GraphPage(Shape):
    """Every revision that is registered here."""

    results: list[Graph]


class RevisionPage(Shape):
    """The revisions of a graph, the newest last."""

    results: list[Revision]


class Page(Shape):
    """A page; `next` is the address of the following one, null on the last."""

    next: str | None


class BothWaysPage(Page):
    """A page with the address of the one before; null on the first."""

    previous: str | None


class RunPage(BothWaysPage):
    """Runs, newest first."""

    results: list[Run]


class ThreadPage(BothWaysPage):
    """Threads, newest first."""

    results: list[ThreadItem]


class QuestionPage(BothWaysPage):
    """Questions, oldest first."""

    results: list[AskedQuestion]


class CheckpointPage(Page):
    """Checkpoints, newest first."""

    results: list[Checkpoint]


class JournalPage(Page):
    """Journal rows, oldest first."""

    results: list[JournalEntry]


class Problem(Shape):
    """A refusal (RFC 9457). Further members depend on `code`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    title: str
    status: int
    code: str = Field(description="A stable name, such as `thread.busy`.")
    detail: str
