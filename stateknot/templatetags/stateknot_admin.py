"""Tags of pages that are stock views of Django: they bring their own context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template

from stateknot.admin.overview import gather_overview

if TYPE_CHECKING:
    from django.template import Context

register = template.Library()


@register.inclusion_tag("admin/stateknot/_overview.html", takes_context=True)
def stateknot_overview(context: Context) -> dict[str, Any]:
    """What needs a person now, as far as the user may see it."""
    return gather_overview(context["request"])
