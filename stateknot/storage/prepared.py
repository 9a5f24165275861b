"""A psycopg cursor whose statements are prepared on the server.

Django's own cursor puts values into the text on the client, so the server plans each
boundary anew. Imported only where the database is PostgreSQL.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg


class PreparedCursor(psycopg.Cursor[Any]):
    """Binds on the server and prepares at the first execution."""

    _query: Any

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """See psycopg.

        Django sets the connection's threshold to None, which forbids preparing whatever
        a statement asks for; it is lifted for this one alone.
        """
        connection = self.connection
        threshold, connection.prepare_threshold = connection.prepare_threshold, 0
        try:
            return super().execute(query, params, prepare=True, **options)
        finally:
            connection.prepare_threshold = threshold
            # Django's query log reads it here, where a prepared statement leaves none.
            self._query = SimpleNamespace(query=query.encode())
