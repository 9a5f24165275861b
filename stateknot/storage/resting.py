"""The columns of a run's row that change when nobody drives it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models.functions import Now

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import RunStatus


def resting_changes(status: RunStatus, error: Any) -> dict[str, Any]:
    """The columns of a run that stops being driven, for now or for good."""
    return {
        "status": str(status),
        "holder": "",
        "lease_expires_at": None,
        "wake_at": None,
        "error": dict(error) if error else None,
        "error_code": error.get("code", "")[:128] if error else "",
        "failed_node": error.get("node", "")[:128] if error else "",
        "ended_at": Now() if status.is_terminal else None,
    }
