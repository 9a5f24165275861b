"""Answering a repeated request as it was answered first, without doing it again.

`services/idempotency.py` does the same for a start from Python, whose key is one for a
graph. Here a key is the caller's own, and holds for whatever is asked under it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from uuid_utils.compat import uuid7

from stateknot.conf import get_settings
from stateknot.errors import KeyReusedError, RunError
from stateknot.models.requests import AnsweredRequest
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SALT = "stateknot.services.repeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a caller was told. `thread_key` is "" where it is about no thread."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    thread_key: str = ""
    is_repeated: bool = False


def answer_once(
    scope: str, key: str, request: bytes, act: Callable[[], Answer]
) -> Answer:
    """Do `act`, or give the answer that the same request got under `key` before.

    `request` are the bytes that make two requests the same; only a keyed digest of them
    is stored, since they may hold secrets. A request that comes while the first is at
    work waits for it. One that is refused leaves no answer behind, as it did nothing.
    Transaction: its own, that of `act` included. Raises KeyReusedError for another
    request under the key, and what `act` raises.
    """
    digest = salted_hmac(_SALT, request, algorithm="sha256").digest()
    store = DjangoCheckpointer()
    rows = AnsweredRequest.objects.using(store.using)
    mine = AnsweredRequest(id=uuid7(), scope=scope, key=key, request_digest=digest)
    with store.atomic():
        # On a conflict the database waits here until the other request has ended.
        rows.bulk_create([mine], ignore_conflicts=True)
        kept = rows.filter(scope=scope, key=key).first()
        if kept is None:
            raise RunError(f"a request under the key {key!r} is at work; ask again")
        if kept.pk != mine.pk:
            return _repeat(kept, digest)
        answer = act()
        rows.filter(pk=mine.pk).update(
            status=answer.status,
            headers=dict(answer.headers),
            body=answer.body,
            thread_key=answer.thread_key,
        )
    return answer


def _repeat(kept: AnsweredRequest, digest: bytes) -> Answer:
    if bytes(kept.request_digest) != digest:
        raise KeyReusedError(kept.key)
    return Answer(
        status=kept.status,
        body=bytes(kept.body),
        headers=kept.headers,
        thread_key=kept.thread_key,
        is_repeated=True,
    )


def forget_answers(most: int = 10_000) -> int:
    """Delete up to `most` answers older than `idempotency_hours`; how many they were.

    Transaction: its own. Idempotent.
    """
    engine = get_settings()
    rows = AnsweredRequest.objects.using(engine.database)
    age = timedelta(hours=engine.idempotency_hours)
    old = rows.filter(answered_at__lt=Now() - age).values_list("pk", flat=True)
    return rows.filter(pk__in=list(old[:most])).delete()[0]
