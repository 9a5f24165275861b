"""List filters whose choices cost one small query, however many runs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from stateknot.conf import get_settings
from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import GraphRevision, Run
from stateknot.selectors.access import limit
from stateknot.selectors.attention import Age, Need, match_age, match_need

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

MOST_CHOICES = 100
NEWEST = 2_000
NEED_WORDS = {
    Need.FAILED: _("failed"),
    Need.STALLED: _("stalled"),
    Need.CLOSING: _("closing"),
}
AGE_WORDS = {
    Age.HOUR: _("the last hour"),
    Age.DAY: _("the last day"),
    Age.WEEK: _("the last week"),
    Age.OVER_HOUR: _("over an hour"),
    Age.OVER_DAY: _("over a day"),
    Age.OVER_WEEK: _("over a week"),
}


class ColumnFilter(admin.SimpleListFilter):
    """Filters by one column, with the choices that subclasses find."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """See the class."""
        value = self.value()
        return queryset.filter(**{self.column: value}) if value else queryset

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices and, so that a link keeps working, the one that is chosen."""
        using = get_settings().database
        found = list(self.find_choices(using, request.user)[:MOST_CHOICES])
        chosen = request.GET.get(self.parameter_name or "")
        values = sorted({*filter(None, found), *([chosen] if chosen else [])})
        return [(value, value) for value in values]

    def find_choices(self, using: str, user: Any) -> QuerySet[Any, str]:
        """The values that occur in rows that `user` may see."""
        raise NotImplementedError


class GraphFilter(ColumnFilter):
    """By graph: those that ever ran."""

    title = _("graph")
    parameter_name = column = "graph_id"

    def find_choices(self, using: str, user: Any) -> QuerySet[Any, str]:
        """See the class."""
        rows = GraphRevision.objects.using(using).order_by("graph_id")
        return rows.values_list("graph_id", flat=True).distinct()


class QuestionGraphFilter(GraphFilter):
    """By the graph whose run asked."""

    column = "run__graph_id"


class _FailureFilter(ColumnFilter):
    """By what failed runs failed of."""

    def find_choices(self, using: str, user: Any) -> QuerySet[Any, str]:
        rows = limit(Run.objects.using(using), user)
        failed = rows.filter(status=RunStatus.FAILED.value)
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


class ActorFilter(ColumnFilter):
    """By who started a run: those of the newest runs, whose ids sort by time."""

    title = _("started by")
    parameter_name = column = "actor"

    def find_choices(self, using: str, user: Any) -> QuerySet[Any, str]:
        """See the class."""
        seen = limit(Run.objects.using(using), user)
        newest = seen.order_by("-id").values("id")[:NEWEST]
        rows = Run.objects.using(using).filter(id__in=newest).exclude(actor="")
        return rows.order_by("actor").values_list("actor", flat=True).distinct()


class NeedFilter(admin.SimpleListFilter):
    """By why a run needs a person; the overview's numbers lead here."""

    title = _("needs a person")
    parameter_name = "needs"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every reason."""
        return [(need.value, NEED_WORDS[need]) for need in Need]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """See the class."""
        value = self.value()
        if value not in list(Need):
            return queryset
        return queryset.filter(match_need(Need(str(value))))


class AgeFilter(admin.SimpleListFilter):
    """By age: up to a span or beyond it."""

    title = _("age")
    parameter_name = "age"
    column = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every bound."""
        return [(age.value, AGE_WORDS[age]) for age in Age]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """See the class."""
        value = self.value()
        if value not in list(Age):
            return queryset
        return queryset.filter(match_age(Age(str(value)), self.column))


class QuestionAgeFilter(AgeFilter):
    """By the age of a question."""

    column = "asked_at"
