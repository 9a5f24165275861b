"""A psycopg cursor whose statements are prepared on the server.

Django's own cursor puts values into the text on the client, so the server plans each
boundary anew. Imported only where the database is PostgreSQL.
"""

from __future__ import annotations

from typing import Any

import psycopg


class PreparedCursor(psycopg.Cursor[Any]):
    """Binds on the server and prepares at the first execution."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """See psycopg."""
        return super().execute(query, params, prepare=True, **options)
