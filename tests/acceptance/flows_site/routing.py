"""The router of the site: the engine's tables and its queue lie in `flows`."""

from __future__ import annotations

from typing import Any


class FlowsRouter:
    """Sends every model of the engine and of its queue to `flows`."""

    def db_for_read(self, model: Any, **_hints: Any) -> str | None:
        return "flows" if model._meta.app_label in {"stateknot", "django_q"} else None

    db_for_write = db_for_read
