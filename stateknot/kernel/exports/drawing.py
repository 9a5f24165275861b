"""Pictures of a topology as text: Mermaid and DOT.

Node ids are any text, so none is written bare. See Note [Names in a picture].

Note [Names in a picture]
~~~~~~~~~~~~~~~~~~~~~~~~~
Mermaid takes few characters in an id and reads a bare `end` as its own keyword. An id
is therefore written as `n_` and the node's, with `_` doubled and any other character
spelt in hex between underscores: `a-b` and `a_b` stay two nodes. What people read is
the quoted label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.vocabulary import END, START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stateknot.kernel.exports.topology import (
        Topology,
        TopologyCall,
        TopologyNode,
    )

    Box = tuple[str, int]

_CLASSES = {
    "subgraph": "stroke-width:3px",
    "interrupt": "stroke-dasharray:6 3",
    "deferred": "stroke-dasharray:2 2",
}
_MERMAID_ENDS = {START: "start_", END: "end_"}
"""Names that no node has, since those of nodes begin with `n_`."""


def to_mermaid(topology: Topology) -> str:
    """A flowchart, the same text for the same graph."""
    lines = ["flowchart TD", '    start_(["START"])', '    end_(["END"])']
    labels = _labels(topology)
    for box, nodes in _boxed(topology):
        drawn = [f"    {_mermaid_node(node, labels[node.id])}" for node in nodes]
        if box is not None:
            title = f'["{_mermaid_text(_box_title(topology, box))}"]'
            name = f"box_{_spelt_all(box[0])}_{box[1]}"
            inner = [f"    {line}" for line in drawn]
            drawn = [f"    subgraph {name}{title}", *inner, "    end"]
        lines += drawn
    lines += [f"    {line}" for line in _mermaid_edges(topology)]
    lines += [f"    {line}" for line in _mermaid_classes(topology)]
    return "\n".join(lines) + "\n"


def mermaid_id(node: str) -> str:
    """The id of a node in Mermaid's text. See Note [Names in a picture]."""
    if node in _MERMAID_ENDS:
        return _MERMAID_ENDS[node]
    return f"n_{_spelt_all(node)}"


def _spelt_all(name: str) -> str:
    return "".join(_spelt(character) for character in name)


def _spelt(character: str) -> str:
    if character == "_":
        return "__"
    if character.isascii() and character.isalnum():
        return character
    return f"_{ord(character):x}_"


def _mermaid_text(text: str) -> str:
    quoted = text.replace("#", "#35;").replace('"', "#quot;")
    return " ".join(quoted.split()) or " "


def _mermaid_node(node: TopologyNode, text: str) -> str:
    label = f'"{_mermaid_text(text)}"'
    is_graph = "subgraph" in node.markers
    shape = f"[[{label}]]" if is_graph else f"[{label}]"
    return f"{mermaid_id(node.id)}{shape}"


def _mermaid_edges(topology: Topology) -> Iterator[str]:
    for source, target, label, is_dotted in _edges(topology):
        arrow = "-.->" if is_dotted else "-->"
        text = f'|"{_mermaid_text(label)}"|' if label else ""
        yield f"{mermaid_id(source)} {arrow}{text} {mermaid_id(target)}"


def _mermaid_classes(topology: Topology) -> Iterator[str]:
    for mark, style in _CLASSES.items():
        marked = [mermaid_id(n.id) for n in topology.nodes if mark in n.markers]
        if marked:
            yield f"classDef {mark} {style}"
            yield f"class {','.join(marked)} {mark}"


def _edges(topology: Topology) -> Iterator[tuple[str, str, str, bool]]:
    """Every edge in drawing order: source, target, label, and whether it is dotted."""
    for node in topology.entry:
        yield START, node, "", False
    for source, target in topology.edges:
        yield source, target, "", False
    for choice in topology.conditional_edges:
        for label, targets in choice.routes.items():
            for target in targets:
                yield choice.source, target, label, False
    for join in topology.waiting_edges:
        for source in join.sources:
            yield source, join.target, "barrier", True
    for relief in topology.reliefs:
        yield relief.source, relief.barrier, f"relief of {relief.relief}", True
    for spec in topology.nodes:
        for target in spec.goto:
            yield spec.id, target, "goto", True
    for source, target in topology.wait_edges:
        yield source, target, "answered", True
    routed = {choice.source for choice in topology.conditional_edges}
    going = {node.id for node in topology.nodes if node.goto}
    for node in topology.finish:
        if node not in routed | going:
            yield node, END, "", False


def _labels(topology: Topology) -> dict[str, str]:
    """What people read of each node: of a call its bound, of a body's node its name."""
    labels = {n.id: n.source.get("node_id", n.id) for n in topology.nodes}
    for call in topology.calls:
        often = f", at most {call.maximum_iterations} times" if _is_loop(call) else ""
        labels[call.site] = f"{call.site}: {call.body}{often}"
    return labels


def _is_loop(call: TopologyCall) -> bool:
    return call.maximum_iterations > 1 or bool(call.repeat)


def _boxed(topology: Topology) -> Iterator[tuple[Box | None, list[TopologyNode]]]:
    """The nodes of each iteration of a call, and before them those of the graph."""
    grouped: dict[Box | None, list[TopologyNode]] = {None: []}
    for node in topology.nodes:
        source = node.source
        box = (source["call_site"], source["iteration"]) if source else None
        grouped.setdefault(box, []).append(node)
    yield None, grouped.pop(None)
    for box in sorted(key for key in grouped if key is not None):
        yield box, grouped[box]


def _box_title(topology: Topology, box: Box) -> str:
    site, iteration = box
    bound = 1 + max(
        node.source["iteration"]
        for node in topology.nodes
        if node.source.get("call_site") == site
    )
    return f"{site}, {iteration + 1} of {bound}" if bound > 1 else site


def _dot_node(node: TopologyNode, text: str) -> str:
    shape = "box, peripheries=2" if "subgraph" in node.markers else "box"
    label = f"label={_dot_text(text)}, " if text != node.id else ""
    return f"{_dot_text(node.id)} [{label}shape={shape}];"


def to_dot(topology: Topology) -> str:
    """A digraph for Graphviz, the same text for the same graph."""
    lines = [f"digraph {_dot_text(topology.graph_id)} {{"]
    for end, label in ((START, "START"), (END, "END")):
        lines.append(f"    {_dot_text(end)} [label={label}, shape=oval];")
    labels = _labels(topology)
    for box, nodes in _boxed(topology):
        drawn = [f"    {_dot_node(node, labels[node.id])}" for node in nodes]
        if box is not None:
            name = _dot_text(f"cluster_{box[0]}_{box[1]}")
            title = _dot_text(_box_title(topology, box))
            inner = [f"    {line}" for line in drawn]
            drawn = [f"    subgraph {name} {{ label={title};", *inner, "    }"]
        lines += drawn
    for source, target, label, is_dotted in _edges(topology):
        parts = [f"label={_dot_text(label)}"] if label else []
        parts += ["style=dashed"] if is_dotted else []
        options = f" [{', '.join(parts)}]" if parts else ""
        lines.append(f"    {_dot_text(source)} -> {_dot_text(target)}{options};")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
