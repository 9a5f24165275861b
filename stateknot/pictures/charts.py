"""Small charts: stacked columns over time, and one bar of parts.

Parts are told by class (see `static/stateknot/picture.css`) and by a title each; a page
puts the numbers beside them as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEIGHT = 90.0
COLUMN = 20.0
BAR = 200.0
BAR_HEIGHT = 12.0
FINEST = 1.0
"""A part that is there is seen, however small its share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A share of a column or bar: `kind` is the end of its class."""

    kind: str
    label: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; the first part stands at the bottom."""

    label: str
    parts: Sequence[Part]

    @property
    def total(self) -> int:
        """All of its parts."""
        return sum(part.count for part in self.parts)


def render_columns(columns: Sequence[Column], *, title: str, key: str) -> SafeString:
    """Stacked columns from left to right, the highest as high as the chart."""
    most = max((column.total for column in columns), default=0) or 1
    width = COLUMN * len(columns)
    body = "".join(
        _column(column, place * COLUMN, most) for place, column in enumerate(columns)
    )
    base = f'<path class="sk-axis" d="M0 {HEIGHT:g}H{width:g}"/>'
    return _svg(body + base, width, HEIGHT + 1, title=title, key=key)


def _column(column: Column, x: float, most: int) -> str:
    rects, bottom = [], HEIGHT
    for part in column.parts:
        if part.count:
            height = max(FINEST, part.count / most * HEIGHT)
            bottom -= height
            tell = f"{column.label}: {part.count} {part.label}"
            rects.append(_rect(part.kind, tell, (x + 2, bottom, COLUMN - 4, height)))
    return "".join(rects)


def render_bar(parts: Sequence[Part], *, most: int, title: str, key: str) -> SafeString:
    """One bar; `most` is the total whose bar is as wide as the chart."""
    body = "".join(_along(parts, most))
    return _svg(body, BAR, BAR_HEIGHT, title=title, key=key)


def _along(parts: Sequence[Part], most: int) -> Iterator[str]:
    x = 0.0
    for part in parts:
        if part.count:
            width = max(FINEST, part.count / max(1, most) * BAR)
            tell = f"{part.count} {part.label}"
            yield _rect(part.kind, tell, (x, 0, width, BAR_HEIGHT))
            x += width


def _rect(kind: str, tell: str, place: tuple[float, float, float, float]) -> str:
    x, y, width, height = place
    return (
        f'<rect class="sk-part sk-part-{escape(kind)}" x="{x:.1f}" y="{y:.1f}"'
        f' width="{width:.1f}" height="{height:.1f}"><title>{escape(tell)}</title>'
        "</rect>"
    )


def _svg(body: str, width: float, height: float, *, title: str, key: str) -> SafeString:
    return mark_safe(  # noqa: S308 - every text in it is escaped
        f'<svg class="sk-chart" role="img" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" aria-labelledby="{escape(key)}"'
        ' xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{escape(key)}">{escape(title)}</title>{body}</svg>'
    )
