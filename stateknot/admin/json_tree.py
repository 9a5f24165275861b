"""JSON as a readable tree: nested definition lists that fold, without script.

Bounded, so that a large state still opens: what is left out is said and counted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.vocabulary import JsonValue

MOST_VALUES = 2_000
DEEPEST = 40
MOST_TEXT = 20_000
FOLD_ABOVE = 12
LONG_TEXT = 400


def pretty(value: JsonValue) -> str:
    """JSON for people: indented, every script readable."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def render_tree(value: JsonValue) -> SafeString:
    """The tree of a JSON value; strings stand in quotes, as JSON writes them."""
    return _Renderer().render(value, 0)


class _Renderer:
    """Counts down what it may still show."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def render(self, value: JsonValue, depth: int) -> SafeString:
        self._left -= 1
        if isinstance(value, dict) and value:
            rows: Iterable[tuple[str, Any]] = value.items()
            return self._container(rows, len(value), depth)
        if isinstance(value, list) and value:
            return self._container(enumerate(value), len(value), depth)
        return _leaf(value)

    def _container(
        self, rows: Iterable[tuple[Any, Any]], count: int, depth: int
    ) -> SafeString:
        if depth >= DEEPEST or self._left <= 0:
            return format_html('<span class="sk-quiet">{}</span>', _entries(count))
        shown = []
        for key, item in rows:
            if self._left <= 0:
                break
            shown.append((key, self.render(item, depth + 1)))
        body = format_html_join("", "<dt>{}</dt><dd>{}</dd>", shown)
        tree = format_html('<dl class="sk-tree">{}{}</dl>', body, _rest(count, shown))
        if not depth:
            return tree
        return format_html(
            "<details{}><summary>{}</summary>{}</details>",
            mark_safe(" open") if count <= FOLD_ABOVE else "",
            _entries(count),
            tree,
        )


def _rest(count: int, shown: list[Any]) -> SafeString:
    left = count - len(shown)
    if not left:
        return SafeString("")
    text = ngettext("%(n)d more is not shown", "%(n)d more are not shown", left)
    return format_html("<dt>…</dt><dd>{}</dd>", text % {"n": left})


def _entries(count: int) -> str:
    return ngettext("%(n)d entry", "%(n)d entries", count) % {"n": count}


def _leaf(value: JsonValue) -> SafeString:
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return _long_text(value)
    if isinstance(value, str) and "\n" in value:
        return format_html("<pre>{}</pre>", value)
    kind = "text" if isinstance(value, str) else "value"
    text = json.dumps(value, ensure_ascii=False)
    return format_html('<code class="sk-{}">{}</code>', kind, text)


def _long_text(value: str) -> SafeString:
    summary = _("text of %(n)d characters") % {"n": len(value)}
    if len(value) > MOST_TEXT:
        value = f"{value[:MOST_TEXT]} …"
    return format_html(
        "<details><summary>{}</summary><pre>{}</pre></details>", summary, value
    )
