"""What all lists of the engine share: rows are read, never written, by stock forms.

History is written by the engine and by services; a form over the columns would break
digests and fences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from stateknot.conf import get_settings
from stateknot.selectors.access import limit

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Lists rows of the engine's database and refuses every stock write.

    `listed` are the columns that a list reads; all others, above all the binary ones,
    stay in the database. `thread_path` leads to the thread with which a row is seen;
    rows without one are everybody's.
    """

    listed: tuple[str, ...] = ()
    thread_path = ""
    actions = None
    list_per_page = 50
    show_full_result_count = False

    class Media:
        css = {"all": ["stateknot/admin.css", "stateknot/picture.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """See the class."""
        rows = super().get_queryset(request).using(get_settings().database)
        if self.thread_path:
            rows = limit(rows, request.user, self.thread_path)
        return rows.only(*self.listed) if self.listed else rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Ask for the view permission itself: nobody changes these rows here."""
        return request.user.has_perm(f"stateknot.view_{self.opts.model_name}")
