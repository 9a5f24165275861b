"""The list of questions, open ones first and the oldest of them on top.

A question is answered on the page of its run, where its state can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import BinaryField, Case, IntegerField, Value, When
from django.db.models.functions import Substr
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy

from stateknot.admin.filters import QuestionAgeFilter, QuestionGraphFilter
from stateknot.admin.presenting import render_status
from stateknot.admin.read_only import ReadOnlyAdmin
from stateknot.admin.searching import match_terms
from stateknot.kernel.vocabulary import WaitKind, WaitStatus
from stateknot.models import Wait

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

EXCERPT = 160
_OPEN_FIRST = Case(
    When(status=WaitStatus.OPEN.value, then=Value(0)),
    default=Value(1),
    output_field=IntegerField(),
)


@admin.register(Wait)
class QuestionAdmin(ReadOnlyAdmin):
    """Questions to people; their payloads only as an excerpt."""

    thread_path = "thread"
    list_display = (
        *("node", "excerpt", "state", "thread_key"),
        *("asked_at", "answered_by"),
    )
    list_filter = ("status", QuestionAgeFilter, QuestionGraphFilter)
    list_select_related = ("thread",)
    listed = (
        *("node_id", "key", "status", "asked_at", "answered_by", "run_id"),
        "thread__key",
    )
    ordering = (_OPEN_FIRST, "asked_at", "id")
    search_fields = ("node_id", "key", "thread__key")
    search_help_text = gettext_lazy("Node, key, thread id, or the beginning of an id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """See the class."""
        rows = super().get_queryset(request).filter(kind=WaitKind.INTERRUPT.value)
        start = Substr("payload", 1, EXCERPT, output_field=BinaryField())
        annotated: QuerySet[Any] = rows.annotate(payload_start=start)
        return annotated

    @admin.display(description=gettext_lazy("asked by"), ordering="node_id")
    def node(self, wait: Wait) -> SafeString | str:
        """The node, and the key where it asked several things."""
        if not wait.key:
            return wait.node_id
        return format_html(
            '{}<br><span class="sk-quiet">{}</span>', wait.node_id, wait.key
        )

    @admin.display(description=gettext_lazy("question"))
    def excerpt(self, wait: Any) -> SafeString:
        """The beginning of the payload's JSON."""
        data = bytes(wait.payload_start)
        text = data.decode(errors="ignore")
        mark = "…" if len(data) == EXCERPT else ""
        return format_html('<code class="sk-excerpt">{}{}</code>', text, mark)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, wait: Wait) -> SafeString:
        """The status as text, with a colour."""
        return render_status(wait.status, wait.get_status_display())

    @admin.display(description=gettext_lazy("thread"), ordering="thread__key")
    def thread_key(self, wait: Wait) -> str:
        """The thread id."""
        return wait.thread.key

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """See `searching.py`."""
        texts = ("node_id", "key", "question_id", "thread__key", "thread__graph_id")
        matching = match_terms(search_term, texts, ["id", "run_id"])
        return queryset.filter(matching), False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the question on the page of its run."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wait = self.get_object(request, object_id)
        if wait is None:
            raise Http404(f"no question {object_id!r}")
        page = reverse("admin:stateknot_run_change", args=[wait.run_id])
        return HttpResponseRedirect(f"{page}#question-{wait.id}")
