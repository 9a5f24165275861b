"""The graph of a run as a picture, and the same as a list for those who do not see it.

Drawn from the definition that the run is pinned to, so that no code is needed for it;
code, where this process has it, only tells in which nodes other graphs run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from stateknot.kernel.exports.build import SUBGRAPH_KINDS, kind_of
from stateknot.kernel.profile import decode
from stateknot.kernel.vocabulary import END, START
from stateknot.pictures import (
    NodeState,
    merge_alike,
    render_svg,
    sketch_definition,
)
from stateknot.pictures.svg import STATE_WORDS
from stateknot.selectors.run_page import find_run_graph
from stateknot.selectors.run_progress import UNREACHED, NodeProgress, list_progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

    from stateknot.models import Run
    from stateknot.pictures import Sketch, SketchNode
    from stateknot.selectors.run_page import Standpoint

_FIRST = (NodeState.FAILED, NodeState.WAITING, NodeState.RUNNING, NodeState.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """A node in words; `leads_to` are labels of its successors."""

    node: SketchNode
    box: str
    leads_to: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPicture:
    """The picture and the list; `summary` counts nodes by state."""

    svg: SafeString
    summary: str
    nodes: list[ListedNode]


def picture_run(run: Run, head: Standpoint | None) -> RunPicture:
    """Draw the graph of `run`, with how far each node is."""
    sketch = _coloured(_sketch(run), list_progress(run, head))
    summary = _summary(sketch)
    title = _("Graph %(graph)s") % {"graph": run.graph_id}
    drawn = merge_alike(sketch)
    if drawn is not sketch:
        alike = _("Nodes that stand alike are drawn as one; the list has each.")
        summary = f"{summary} {alike}"
    svg = render_svg(drawn, title=title, describe=summary, key="sk-picture")
    return RunPicture(svg=svg, summary=summary, nodes=_listed(sketch))


def _sketch(run: Run) -> Sketch:
    revision = run.revision
    source_map = decode(revision.source_map) if revision.source_map else {}
    sketch = sketch_definition(decode(revision.definition), source_map)
    graph = find_run_graph(run)
    if graph is None:
        return sketch
    specs = graph.blueprint.nodes
    graphs = {n for n in specs if kind_of(specs[n]) in SUBGRAPH_KINDS}
    nodes = {
        id: replace(node, is_graph=True) if id in graphs else node
        for id, node in sketch.nodes.items()
    }
    return replace(sketch, nodes=nodes)


def _coloured(sketch: Sketch, progress: Mapping[str, NodeProgress]) -> Sketch:
    unreached = NodeProgress(state=UNREACHED)
    nodes = {}
    for id, node in sketch.nodes.items():
        at = progress.get(id, unreached)
        state = None if id in (START, END) else NodeState(at.state)
        nodes[id] = replace(node, state=state, note=_note(state, at))
    return replace(sketch, nodes=nodes)


def _note(state: NodeState | None, at: NodeProgress) -> str:
    """The word of a state, and how often it was tried where that tells something."""
    if state is None:
        return ""
    word = str(STATE_WORDS[state])
    if state is NodeState.FAILED and at.failed:
        tries = ngettext("%(n)d attempt", "%(n)d attempts", at.failed)
        return f"{word} · {tries % {'n': at.failed}}"
    if at.succeeded and (at.succeeded > 1 or state is not NodeState.DONE):
        times = ngettext("done %(n)d time", "done %(n)d times", at.succeeded)
        done = times % {"n": at.succeeded}
        return done if state is NodeState.DONE else f"{word} · {done}"
    return word


def _summary(sketch: Sketch) -> str:
    states = [node.state for node in sketch.nodes.values() if node.state]
    counts = {state: states.count(state) for state in NodeState}
    parts = [f"{count} {STATE_WORDS[s]}" for s, count in counts.items() if count]
    nodes = ngettext("%(n)d node", "%(n)d nodes", len(states)) % {"n": len(states)}
    return f"{nodes}: {', '.join(parts)}."


def _listed(sketch: Sketch) -> list[ListedNode]:
    """What needs attention first, then by name."""
    leads: dict[str, list[str]] = {}
    for edge in sketch.edges:
        label = sketch.nodes[edge.target].label
        shown = f"{label} ({edge.label})" if edge.label else label
        leads.setdefault(edge.source, []).append(shown)
    nodes = [node for node in sketch.nodes.values() if node.state]
    rank = {state: place for place, state in enumerate(_FIRST)}
    nodes.sort(key=lambda n: rank.get(n.state or NodeState.DONE, len(rank)))
    return [
        ListedNode(
            node=node,
            box=sketch.groups.get(node.group, ""),
            leads_to=leads.get(node.id, []),
        )
        for node in nodes
    ]
