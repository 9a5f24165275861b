"""The export methods that builders and compiled graphs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.kernel.exports.authored import collapse
from stateknot.kernel.exports.build import build_topology
from stateknot.kernel.exports.drawing import to_dot, to_mermaid

if TYPE_CHECKING:
    from stateknot.kernel.exports.shape import GraphShape
    from stateknot.kernel.exports.topology import Topology


class Exported:
    """A graph that can be told as data and as pictures."""

    def shape(self) -> GraphShape:
        """Its nodes and how they follow each other."""
        raise NotImplementedError

    def topology(self) -> Topology:
        """The graph as data, with what is or may be wrong with it."""
        return build_topology(self.shape())

    def to_json(self) -> str:
        """The topology as JSON."""
        return self.topology().to_json()

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return to_mermaid(self.topology())

    def to_dot(self) -> str:
        """The graph as a digraph for Graphviz."""
        return to_dot(self.topology())

    def authored(self) -> Exported:
        """The same with each subgraph call as one box, as its author wrote it."""
        return _View(collapse(self.shape()))


class _View(Exported):
    """The exports of a shape."""

    def __init__(self, shape: GraphShape) -> None:
        self._shape = shape

    def shape(self) -> GraphShape:
        """See `Exported`."""
        return self._shape
