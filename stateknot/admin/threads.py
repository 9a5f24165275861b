"""The list of threads, and the page of one: its runs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy

from stateknot.admin.filters import AgeFilter, GraphFilter
from stateknot.admin.presenting import render_status
from stateknot.admin.read_only import ReadOnlyAdmin
from stateknot.admin.searching import match_terms
from stateknot.models import Thread
from stateknot.selectors import list_runs

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

MOST_RUNS = 50
_LARGE = ("error", "metadata", "output", "request_digest")


@admin.register(Thread)
class ThreadAdmin(ReadOnlyAdmin):
    """Threads with the status of the run that stands on each."""

    thread_path = "pk"
    list_display = ("key", "graph_id", "state", "created_at")
    list_filter = (GraphFilter, AgeFilter)
    list_select_related = ("current_run",)
    listed = ("key", "graph_id", "created_at", "current_run__status")
    ordering = ("-created_at", "-id")
    search_fields = ("key",)
    search_help_text = gettext_lazy("Thread id, or the beginning of a run id")

    @admin.display(description=gettext_lazy("current run"))
    def state(self, thread: Thread) -> SafeString | str:
        """The status of the current run."""
        run = thread.current_run
        return render_status(run.status, run.get_status_display()) if run else "-"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """See `searching.py`."""
        matching = match_terms(search_term, ["key"], ["id", "current_run_id"])
        return queryset.filter(matching), False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a thread."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        thread = self.get_object(request, object_id)
        if thread is None:
            raise Http404(f"no thread {object_id!r}")
        runs = list_runs(thread_id=thread.key).defer(*_LARGE)[: MOST_RUNS + 1]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": thread.key,
            "subtitle": None,
            "media": self.media,
            "thread": thread,
            "runs": [
                (run, render_status(run.status, run.get_status_display()))
                for run in runs[:MOST_RUNS]
            ],
            "has_more": len(runs) > MOST_RUNS,
        }
        return TemplateResponse(request, "admin/stateknot/thread/page.html", context)
