"""Graphs in JSON form for the kernel's tests, and the recorded vectors."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stateknot.errors import GraphError

VECTORS = Path(__file__).parent / "vectors"

Json = dict[str, Any]


def load_vectors(file_name: str) -> list[Json]:
    entries: list[Json] = json.loads((VECTORS / file_name).read_text())
    return entries


def composition_vectors() -> dict[str, Json]:
    return {entry["name"]: entry for entry in load_vectors("composition.json")}


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def identity(name: str) -> Json:
    return {
        "owner": {"issuer": "https://example.com", "subject": "composition"},
        "capability": {"name": name, "version": "1.0.0"},
    }


def schema(name: str) -> Json:
    return {
        "id": f"https://example.com/schemas/{name}",
        "version": "1.0.0",
        "digest": digest(name),
    }


def node(
    node_id: str,
    to: list[str] | None = None,
    *,
    routes: dict[str, list[str]] | None = None,
    wait_to: list[str] | None = None,
    terminal: bool = False,
) -> Json:
    """One node: `to` is its continue set, `routes` maps labels to successors."""
    data: Json = {
        "node_id": node_id,
        "routes": [
            {"route_id": label, "successors": successors}
            for label, successors in (routes or {}).items()
        ],
        "terminal": terminal,
    }
    if to is not None:
        data["continue_to"] = to
    if wait_to is not None:
        data["wait_to"] = wait_to
    return data


def end(node_id: str) -> Json:
    return node(node_id, terminal=True)


def graph(
    nodes: list[Json],
    entry: list[str],
    *,
    name: str = "sample",
    supersteps: int = 64,
    parallelism: int = 4,
    **changes: Any,
) -> Json:
    """A definition in the JSON form of the vectors, `changes` replacing its keys."""
    return {
        "identity": identity(name),
        "input_schema": schema("input"),
        "state_schema": schema("state"),
        "update_schema": schema("update"),
        "output_schema": schema("output"),
        "reducer": {
            "identity": identity("reducer"),
            "definition_digest": digest("reducer"),
        },
        "entry_nodes": entry,
        "nodes": nodes,
        "limits": {
            "maximum_supersteps": str(supersteps),
            "maximum_parallelism": parallelism,
        },
        **changes,
    }


def chain(*node_ids: str, **options: Any) -> Json:
    """A graph that runs the nodes one after the other."""
    nodes = [node(source, [target]) for source, target in pairwise(node_ids)]
    return graph([*nodes, end(node_ids[-1])], [node_ids[0]], **options)


def refused(kind: str) -> pytest.RaisesExc[GraphError]:
    """Expect a GraphError whose first issue is of `kind`."""
    return pytest.RaisesExc(GraphError, check=lambda error: error.kind == kind)
