"""The list of graph revisions, and the page of one with its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.filters import GraphFilter
from stateknot.admin.json_tree import pretty
from stateknot.admin.presenting import shorten
from stateknot.admin.read_only import ReadOnlyAdmin
from stateknot.kernel.profile import decode
from stateknot.models import GraphRevision
from stateknot.registry import find_graph

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


@admin.register(GraphRevision)
class RevisionAdmin(ReadOnlyAdmin):
    """Every definition that ever ran, newest first."""

    list_display = ("name", "version", "short_digest", "state", "first_seen_at")
    list_filter = ("state", GraphFilter)
    listed = ("graph_id", "version", "digest", "state", "first_seen_at")
    ordering = ("-first_seen_at", "-id")
    search_fields = ("graph_id", "version", "digest")
    fields = (
        *("graph_id", "version", "digest", "state", "first_seen_at"),
        *("code", "runs", "definition_text"),
    )
    readonly_fields = fields

    @admin.display(description=gettext_lazy("graph"), ordering="graph_id")
    def name(self, revision: GraphRevision) -> str:
        """The graph id."""
        return revision.graph_id

    @admin.display(description=gettext_lazy("digest"), ordering="digest")
    def short_digest(self, revision: GraphRevision) -> SafeString:
        """The ends of the digest."""
        return shorten(revision.digest.removeprefix("sha256:"))

    @admin.display(description=gettext_lazy("code"))
    def code(self, revision: GraphRevision) -> str:
        """Whether this process could run it."""
        here = find_graph(revision.graph_id, digest=revision.digest)
        return _("registered in this process") if here else _("not in this process")

    @admin.display(description=gettext_lazy("runs"))
    def runs(self, revision: GraphRevision) -> SafeString:
        """A link to its runs."""
        page = reverse("admin:stateknot_run_changelist")
        url = f"{page}?revision__id__exact={revision.pk}"
        return format_html('<a href="{}">{}</a>', url, _("Runs of this revision"))

    @admin.display(description=gettext_lazy("definition"))
    def definition_text(self, revision: GraphRevision) -> SafeString:
        """The canonical definition, indented."""
        text = pretty(decode(revision.definition))
        return format_html(
            '<details><summary>{}</summary><pre class="sk-json">{}</pre></details>',
            _("Show JSON"),
            text,
        )
