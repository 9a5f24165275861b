"""The examples' graphs, registered when Django starts."""

from __future__ import annotations

from project.examples.review import build_graph
from stateknot.registry import register

graph = register(build_graph())
