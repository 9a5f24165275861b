"""Starting a run once, however often the request is repeated."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stateknot.errors import KeyReusedError, RunError
from stateknot.kernel.lifecycle import require_key
from stateknot.kernel.limits import MAXIMUM_PRIORITY
from stateknot.kernel.profile import encode
from stateknot.models import Run

if TYPE_CHECKING:
    from stateknot.kernel.writes import Admission


def check_request(thread_id: str | None, key: str | None, priority: int) -> None:
    """Refuse what no column takes, before anything is read. Raises RunError."""
    if thread_id is not None:
        require_key(thread_id, "thread id")
    if key is not None:
        require_key(key, "idempotency key")
    if abs(priority) > MAXIMUM_PRIORITY:
        raise RunError(
            f"priority {priority} is out of range; use {-MAXIMUM_PRIORITY} to "
            f"{MAXIMUM_PRIORITY}"
        )


def request_digest(
    admission: Admission, thread_id: str | None, version: str | None
) -> bytes:
    """What makes two starts the same: version and thread asked for, state, inputs.

    Not the revision: a start that is repeated after a deploy is the same start.
    """
    request = {
        "version": version,
        "thread": thread_id,
        "state": dict(admission.delta.changes),
        "pending": [activation.to_json() for activation in admission.pending],
    }
    return hashlib.sha256(encode(request)).digest()


def find_started(
    graph_id: str, key: str | None, digest: bytes, using: str
) -> Run | None:
    """The run that `key` started, or None. Raises KeyReusedError for another
    request."""
    if not key:
        return None
    earlier = Run.objects.using(using).filter(graph_id=graph_id, idempotency_key=key)
    run: Run | None = earlier.first()
    if run is not None and bytes(run.request_digest) != digest:
        raise KeyReusedError(key, f"start of {graph_id!r} (run {run.id})")
    return run
