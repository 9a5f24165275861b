"""Pages of lists, and the addresses of following pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination

from stateknot.storage.rows import as_uuid

if TYPE_CHECKING:
    from rest_framework.request import Request


class IdCursor(CursorPagination):
    """Walks rows by id: unique, and newer ones are greater (UUIDv7)."""

    invalid_cursor_message = "the cursor is none of this list's; begin without one"

    def __init__(self, page_size: int, *, newest_first: bool = True) -> None:
        self.page_size = page_size
        self.ordering = "-id" if newest_first else "id"

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor. Raises NotFound where its position names no id."""
        cursor: Any = super().decode_cursor(request)
        position = None if cursor is None else cursor.position
        if position is not None and as_uuid(position) is None:
            raise NotFound(self.invalid_cursor_message)
        return cursor  # type: ignore[no-any-return]


def next_address(request: Request, **changes: Any) -> str:
    """The address of this request with some parameters changed."""
    query = QueryDict(request.META.get("QUERY_STRING", ""), mutable=True)
    for name, value in changes.items():
        query[name] = str(value)
    return request.build_absolute_uri(f"?{query.urlencode()}")
