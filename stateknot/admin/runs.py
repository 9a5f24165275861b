"""The list of runs, the addresses of a run's acts, and its page.

What the page shows is gathered in `run_page.py`; the acts are in `run_verbs.py` and
`edit_view.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.edit_view import EditView
from stateknot.admin.filters import (
    ActorFilter,
    AgeFilter,
    ErrorCodeFilter,
    FailedNodeFilter,
    GraphFilter,
    NeedFilter,
)
from stateknot.admin.live_view import LiveView
from stateknot.admin.move_view import MoveView
from stateknot.admin.presenting import render_status, render_time, shorten
from stateknot.admin.read_only import ReadOnlyAdmin
from stateknot.admin.run_page import gather_page
from stateknot.admin.run_verbs import AnswerView, CancelView, ResumeView, RetryView
from stateknot.admin.searching import match_terms
from stateknot.errors import NotFoundError
from stateknot.models import Run
from stateknot.selectors.access import get_visible_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from stateknot.admin.answer_form import AnswerForm

PAGE = "admin/stateknot/run/page.html"


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs, newest first; a run's page is where it is understood and repaired."""

    thread_path = "thread"
    list_display = (
        *("short_id", "state", "thread_key", "failure"),
        *("admitted", "actor"),
    )
    list_filter = (
        *(NeedFilter, "status", GraphFilter, FailedNodeFilter, ErrorCodeFilter),
        *(AgeFilter, ActorFilter),
    )
    list_select_related = ("thread",)
    listed = (
        *("graph_id", "status", "failed_node", "error_code"),
        *("created_at", "actor", "thread__key"),
    )
    ordering = ("-created_at", "-id")
    search_fields = ("id", "thread__key", "error_code", "error__message")
    search_help_text = gettext_lazy(
        "Thread id, the beginning of a run id, words of the error, or who started it"
    )

    @admin.display(description=gettext_lazy("run"))
    def short_id(self, run: Run) -> SafeString:
        """The ends of the id."""
        return shorten(run.id)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, run: Run) -> SafeString:
        """The status as text, with a colour."""
        return render_status(run.status, run.get_status_display())

    @admin.display(description=gettext_lazy("thread"), ordering="thread__key")
    def thread_key(self, run: Run) -> SafeString:
        """The thread id that the project chose, and the graph."""
        return format_html(
            '<div class="sk-thread">{}<br><span class="sk-quiet">{}</span></div>',
            run.thread.key,
            run.graph_id,
        )

    @admin.display(description=gettext_lazy("failed at"), ordering="failed_node")
    def failure(self, run: Run) -> SafeString | str:
        """Node and error code."""
        if not run.error_code:
            return "-"
        return format_html(
            '<div class="sk-failure">{}<br><span class="sk-quiet">{}</span></div>',
            run.failed_node or "-",
            run.error_code,
        )

    @admin.display(description=gettext_lazy("admitted"), ordering="created_at")
    def admitted(self, run: Run) -> SafeString:
        """When the run came to be."""
        return render_time(run.created_at)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """See `searching.py`."""
        texts = (
            *("thread__key", "error_code", "error__type", "error__message"),
            "actor",
        )
        return queryset.filter(match_terms(search_term, texts)), False

    def get_urls(self) -> list[URLPattern]:
        """The stock addresses and one for each act."""
        views: dict[str, Any] = {
            "retry/": RetryView,
            "resume/": ResumeView,
            "edit/": EditView,
            "move/": MoveView,
            "cancel/": CancelView,
            "live/": LiveView,
            "answer/<uuid:wait_id>/": AnswerView,
        }
        own = [
            path(
                f"<uuid:run_id>/{route}",
                self.admin_site.admin_view(view.as_view(model_admin=self)),
                name=f"stateknot_run_{route.partition('/')[0]}",
            )
            for route, view in views.items()
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a run, only to be read: acts have addresses of their own."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        try:
            run = get_visible_run(request.user, object_id)
        except NotFoundError as error:
            raise Http404(str(error)) from error
        return self.render_run_page(request, run)

    def render_run_page(
        self,
        request: HttpRequest,
        run: Run,
        answers: Mapping[str, AnswerForm] | None = None,
    ) -> HttpResponse:
        """The page, with the forms of questions whose answers did not fit."""
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Run of %s") % run.graph_id,
            "subtitle": run.thread.key,
            "media": self.media,
            **gather_page(request, run, answers or {}),
        }
        return TemplateResponse(request, PAGE, context)
