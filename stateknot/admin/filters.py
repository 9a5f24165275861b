"""List filters whose choices cost one small query, however many runs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from stateknot.conf import get_settings
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import GraphRevision, Run

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

MOST_CHOICES = 100


class ColumnFilter(admin.SimpleListFilter):
    """Filters by one column, with the choices that subclasses find."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """See the class."""
        value = self.value()
        return queryset.filter(**{self.column: value}) if value else queryset

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices and, so that a link keeps working, the one that is chosen."""
        found = list(self.find_choices(get_settings().database)[:MOST_CHOICES])
        chosen = request.GET.get(self.parameter_name or "")
        values = sorted({*filter(None, found), *([chosen] if chosen else [])})
        return [(value, value) for value in values]

    def find_choices(self, using: str) -> QuerySet[Any, str]:
        """The values that occur."""
        raise NotImplementedError


class GraphFilter(ColumnFilter):
    """By graph: those that ever ran."""

    title = _("graph")
    parameter_name = column = "graph_id"

    def find_choices(self, using: str) -> QuerySet[Any, str]:
        """See the class."""
        rows = GraphRevision.objects.using(using).order_by("graph_id")
        return rows.values_list("graph_id", flat=True).distinct()


class _FailureFilter(ColumnFilter):
    """By what failed runs failed of."""

    def find_choices(self, using: str) -> QuerySet[Any, str]:
        failed = Run.objects.using(using).filter(status=RunStatus.FAILED.value)
        found: QuerySet[Any, str] = (
            failed.order_by(self.column).values_list(self.column, flat=True).distinct()
        )
        return found


class FailedNodeFilter(_FailureFilter):
    """By the node at which a run failed."""

    title = _("failed node")
    parameter_name = column = "failed_node"


class ErrorCodeFilter(_FailureFilter):
    """By the code of the error."""

    title = _("error code")
    parameter_name = column = "error_code"
