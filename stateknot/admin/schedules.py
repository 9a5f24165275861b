"""Schedules: the one list whose rows are made and edited by a stock form.

The form accepts what a declaration in code accepts; what a pass has written is read
only. Each change of the terms begins with the next tick: `services/schedules.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.json_text import parse_json
from stateknot.admin.json_tree import pretty
from stateknot.admin.read_only import ModelAdmin
from stateknot.conf import get_settings
from stateknot.errors import StateError
from stateknot.models import Schedule
from stateknot.registry import find_graph, list_graphs
from stateknot.runtime.schedules import CronSchedule
from stateknot.services.schedules import plan_from
from stateknot.storage import DjangoCheckpointer

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    ModelForm = forms.ModelForm[Schedule]
else:
    ModelForm = forms.ModelForm

TYPED = (
    *("name", "graph_id", "cron", "time_zone", "input"),
    *("catch_up", "catch_up_limit", "overlap", "is_enabled"),
)
"""The fields of the form."""

TERMS = ("graph_id", "cron", "time_zone", "is_enabled")
"""The fields whose change makes the next tick another one."""


class ScheduleForm(ModelForm):
    """A schedule's terms, checked as a declaration is."""

    class Meta:
        model = Schedule
        fields = TYPED
        widgets: ClassVar = {
            "input": forms.Textarea(
                attrs={"rows": 8, "class": "sk-json", "spellcheck": "false"}
            )
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = {graph.graph_id for graph in list_graphs()} | {self.instance.graph_id}
        self.fields["graph_id"] = forms.ChoiceField(
            label=gettext_lazy("graph"),
            choices=[(name, name) for name in sorted(known)],
        )
        if not self.is_bound and self.instance.pk:
            self.initial["input"] = pretty(json.loads(self.instance.input))

    def clean_input(self) -> str:
        """The typed JSON, as text of one line."""
        return json.dumps(parse_json(self.cleaned_data["input"]), ensure_ascii=False)

    def clean(self) -> dict[str, Any]:
        """Hold the terms to what a declaration in code is held to."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        terms = {name: cleaned[name] for name in TYPED}
        graph = find_graph(terms.pop("graph_id"))
        value = json.loads(terms.pop("input"))
        try:
            CronSchedule(**terms, input=value)
        except StateError as error:
            place = error.path.split(".")[0]
            self.add_error(place if place in self.fields else None, str(error))
        try:
            if graph is not None:
                graph.blueprint.fold.initial(value)
        except StateError as error:
            self.add_error("input", str(error))
        return cleaned


@admin.register(Schedule)
class ScheduleAdmin(ModelAdmin):
    """Every schedule, the one that is due next first."""

    form = ScheduleForm
    list_display = (
        *("name", "graph_id", "cron", "time_zone", "is_enabled", "next_tick_at"),
        *("last_tick_at", "started_count", "skipped_count", "failed_count"),
    )
    list_filter = ("is_enabled", "graph_id")
    search_fields = ("name", "graph_id", "last_error")
    ordering = ("next_tick_at", "name")
    list_per_page = 50
    readonly_fields = (
        *("origin", "next_tick_at", "held_tick_at", "last_tick_at", "run"),
        *("started_count", "skipped_count", "failed_count", "last_error"),
    )
    fieldsets = (
        (None, {"fields": TYPED}),
        (gettext_lazy("So far"), {"fields": readonly_fields}),
    )

    class Media:
        css: ClassVar = {"all": ["stateknot/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        """The rows of the engine's database."""
        return super().get_queryset(request).using(get_settings().database)

    def save_model(
        self, request: HttpRequest, obj: Schedule, form: Any, change: bool
    ) -> None:
        """Save, and plan anew where the terms are others."""
        if not change or set(TERMS) & set(form.changed_data):
            plan_from(obj, DjangoCheckpointer().now())
        obj.last_error = ""
        obj.save(using=get_settings().database)

    @admin.display(description=gettext_lazy("declared"))
    def origin(self, schedule: Schedule) -> str:
        """Where the schedule comes from, and whose word holds."""
        if not schedule.declared:
            return _("by hand")
        return _("in code; what is edited here stays until the declaration changes")

    @admin.display(description=gettext_lazy("last run"))
    def run(self, schedule: Schedule) -> SafeString | str:
        """A link to the run of the newest tick that was started."""
        if schedule.last_run_id is None:
            return "-"
        url = reverse("admin:stateknot_run_change", args=[schedule.last_run_id])
        return format_html('<a href="{}">{}</a>', url, schedule.last_run_id)
