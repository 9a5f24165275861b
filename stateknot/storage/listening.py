"""Whether somebody listens to what cursors execute: then statements go through them.

Django's query log and its execute wrappers (debug toolbars, tracing, tests that count)
see only Django's own cursors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


def is_heard(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement that goes past Django's cursor would be missed."""
    return connection.queries_logged or bool(connection.execute_wrappers)
