"""The text of a picture: SVG of classes and attributes that a strict policy lets pass.

Colours, dashes and the dark theme are in `stateknot/static/stateknot/picture.css`. A
state is told three times: by colour, by the shape beside the name, by its word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from stateknot.kernel.vocabulary import END, START
from stateknot.pictures.arrows import LONGEST_LABEL, cut, render_arrows
from stateknot.pictures.compound import draw
from stateknot.pictures.sketch import NodeState

if TYPE_CHECKING:
    from stateknot.pictures.compound import Box
    from stateknot.pictures.sketch import Sketch, SketchNode

MARGIN = 18.0
LONGEST_NOTE = 26

SHAPES = {
    NodeState.DONE: '<circle r="8"/><path class="sk-ink" d="M-4 0l3 3l5-6"/>',
    NodeState.RUNNING: '<path d="M-6-8L8 0L-6 8z"/>',
    NodeState.FAILED: (
        '<path d="M-3.5-8.5h7l5 5v7l-5 5h-7l-5-5v-7z"/>'
        '<path class="sk-ink" d="M-3-3l6 6M3-3l-6 6"/>'
    ),
    NodeState.WAITING: (
        '<path d="M0-9.5L9.5 0L0 9.5L-9.5 0z"/>'
        '<path class="sk-ink" d="M-2-2.5v5M2-2.5v5"/>'
    ),
    NodeState.PENDING: '<rect x="-7" y="-7" width="14" height="14"/>',
    NodeState.UNREACHED: '<circle r="3"/>',
}


STATE_WORDS = {
    NodeState.DONE: _("done"),
    NodeState.RUNNING: _("running"),
    NodeState.FAILED: _("failed"),
    NodeState.WAITING: _("waiting"),
    NodeState.PENDING: _("pending"),
    NodeState.UNREACHED: _("not reached"),
}


def render_svg(sketch: Sketch, *, title: str, describe: str, key: str) -> SafeString:
    """The picture of `sketch`, as wide as it needs and no wider than its place.

    `title` and `describe` are read to those who do not see it; `key` tells its ids from
    those of other pictures on the page.
    """
    drawing = draw(sketch)
    width = drawing.size.width + 2 * MARGIN
    height = drawing.size.height + 2 * MARGIN
    parts = [
        f'<svg class="sk-picture" role="img" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="{-MARGIN:g} {-MARGIN:g} {width:.1f} {height:.1f}"'
        f' aria-labelledby="{escape(key)}-title {escape(key)}-desc"'
        ' xmlns="http://www.w3.org/2000/svg">',
        f'<title id="{escape(key)}-title">{escape(title)}</title>',
        f'<desc id="{escape(key)}-desc">{escape(describe)}</desc>',
        *(_group(sketch.groups.get(g, g), box) for g, box in drawing.groups.items()),
        *render_arrows(sketch, drawing),
        *(_node(node, drawing.nodes[node.id]) for node in sketch.nodes.values()),
        "</svg>",
    ]
    return mark_safe("".join(parts))  # noqa: S308 - every text in it is escaped


def _group(label: str, box: Box) -> str:
    (x, y), (width, height) = box
    return (
        f'<g class="sk-box"><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}" rx="10"/><text x="{x + 12:.1f}" y="{y + 20:.1f}">'
        f"{escape(label)}</text></g>"
    )


def _node(node: SketchNode, box: Box) -> str:
    (x, y), (width, height) = box
    middle = y + height / 2
    if node.id in (START, END):
        return (
            f'<g class="sk-end"><rect x="{x:.1f}" y="{y:.1f}" width="{width:.0f}"'
            f' height="{height:.0f}" rx="14"/><text x="{x + width / 2:.1f}"'
            f' y="{middle + 4:.1f}" text-anchor="middle">{escape(node.label)}'
            "</text></g>"
        )
    state = node.state
    word = node.note or (str(STATE_WORDS[state]) if state else "")
    full = f"{node.label}: {word}" if word else node.label
    left = x + (34 if state else 12)
    shape = (
        f'<g class="sk-shape" transform="translate({x + 18:.1f} {middle:.1f})">'
        f"{SHAPES[state]}</g>"
        if state
        else ""
    )
    second = (
        f'<text class="sk-word" x="{left:.1f}" y="{middle + 14:.1f}">'
        f"{escape(cut(word, LONGEST_NOTE))}</text>"
        if word
        else ""
    )
    radius = 2 if state is NodeState.FAILED else 7
    inner = (
        f'<rect class="sk-graph" x="{x + 4:.1f}" y="{y + 4:.1f}" rx="4"'
        f' width="{width - 8:.0f}" height="{height - 8:.0f}"/>'
        if node.is_graph
        else ""
    )
    return (
        f'<g class="sk-node sk-node-{state or "plain"}"><title>{escape(full)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.0f}" height="{height:.0f}"'
        f' rx="{radius}"/>{inner}{shape}<text x="{left:.1f}"'
        f' y="{middle - 3 if word else middle + 4:.1f}">'
        f"{escape(cut(node.label, LONGEST_LABEL))}</text>{second}</g>"
    )
