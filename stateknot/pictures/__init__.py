"""Graphs as pictures: a layered drawing in SVG, without a library, script or style.

Knows definitions as data and nothing of runs or databases, so any page may use it.
Start with `sketch.py` for what is drawn, then `layers.py` and `places.py` for where
things stand, `compound.py` for boxes within the picture and `svg.py` for the text.
"""

from stateknot.pictures.alike import merge_alike
from stateknot.pictures.sketch import (
    NodeState,
    Sketch,
    SketchEdge,
    SketchNode,
    sketch_definition,
)
from stateknot.pictures.svg import render_svg

__all__ = [
    "NodeState",
    "Sketch",
    "SketchEdge",
    "SketchNode",
    "merge_alike",
    "render_svg",
    "sketch_definition",
]
