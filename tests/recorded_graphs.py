"""Graphs of recorded scientific workflows: `shared/data/dags.json` beside the checkout.

Owns how they are read and what their levels are, which is counted here and not taken
from the file. Knows no engine. Read `tests/runtime/test_recorded_graphs.py` next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "dags.json"


@dataclass(frozen=True)
class RecordedGraph:
    """The tasks of a workflow, by number, and what each waits for."""

    name: str
    tasks: int
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def parents(self) -> list[list[int]]:
        """For each task the tasks that must be done before it."""
        found: list[list[int]] = [[] for _ in range(self.tasks)]
        for parent, child in self.edges:
            found[child].append(parent)
        return found

    @cached_property
    def levels(self) -> list[int]:
        """For each task the length of the longest way to it from a task with no parent.

        Tasks are numbered in any order, so levels settle over several passes.
        """
        levels = [0] * self.tasks
        settled = False
        while not settled:
            settled = True
            for child, parents in enumerate(self.parents):
                level = max((levels[p] + 1 for p in parents), default=0)
                settled = settled and level == levels[child]
                levels[child] = level
        return levels

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return max(self.levels) + 1


def find_recorded_names() -> list[str]:
    """The names of all, or one that says what to do where there are none."""
    return [row["name"] for row in _rows()] if DATA.is_file() else ["missing"]


def read_recorded(name: str) -> RecordedGraph:
    """Read one. Raises FileNotFoundError saying where they are looked for."""
    if not DATA.is_file():
        raise FileNotFoundError(
            f"{DATA} is missing: the recorded graphs lie in the folder `shared` beside "
            "the checkout and are read from there, not copied"
        )
    row = next(row for row in _rows() if row["name"] == name)
    edges = tuple((parent, child) for parent, child in row["edges"])
    return RecordedGraph(name=name, tasks=row["tasks"], edges=edges)


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(DATA.read_text())["dags"]
    return rows
