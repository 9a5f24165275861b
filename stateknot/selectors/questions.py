"""Asking for questions to people, whoever may answer them.

A question that a child run asks is passed on by its parent, which is where it is
answered; so only those of root runs are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.conf import get_settings
from stateknot.errors import NotFoundError
from stateknot.kernel.vocabulary import WaitKind
from stateknot.models import Wait
from stateknot.selectors.access import limit
from stateknot.storage.rows import as_uuid

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet


def list_questions(
    *,
    graph_id: str | None = None,
    thread_id: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
) -> QuerySet[Wait]:
    """Questions that match every filter given; a lazy queryset."""
    filters = {
        "run__graph_id": graph_id,
        "thread__key": thread_id,
        "status": status,
        "asked_at__gte": since,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    rows = Wait.objects.using(get_settings().database)
    asked = rows.filter(kind=WaitKind.INTERRUPT.value, namespace="")
    return asked.select_related("thread", "run").filter(**given)


def get_visible_question(user: Any, question_id: str) -> Wait:
    """The question. Raises NotFoundError as for none at all."""
    uuid = as_uuid(question_id)
    wait: Wait | None = None
    if uuid is not None:
        wait = limit(list_questions(), user).filter(id=uuid).first()
    if wait is None:
        raise NotFoundError(f"no question {question_id!r}")
    return wait
