"""The graphs of a process: by id, digest and version, the newest last."""

from __future__ import annotations

from typing import Any

import pytest

from stateknot.errors import NotFoundError
from stateknot.registry import find_graph, get_graph, list_graphs, register
from tests.application.desk import LINE, build_ask, build_line

OLD, NEW = "1.0.0", "2.0.0"


@pytest.fixture(autouse=True)
def _empty(register_only: Any) -> None:
    register_only()


def test_registered_graph_is_found_by_its_id() -> None:
    graph = register(build_line())
    assert get_graph(LINE) is graph
    assert get_graph(LINE, digest=graph.digest) is graph
    assert list_graphs() == [graph]


def test_registering_a_revision_again_changes_nothing() -> None:
    graph = register(build_line())
    register(build_line())
    assert list_graphs() == [graph]


def test_newest_revision_is_the_last_that_was_registered() -> None:
    old, new = register(build_line(OLD)), register(build_line(NEW))
    assert get_graph(LINE) is new
    assert get_graph(LINE, version=OLD) is old
    assert get_graph(LINE, digest=old.digest) is old


def test_superseded_revision_stands_behind_its_successor() -> None:
    old = build_line(OLD)
    new = register(build_line(NEW), superseded=[old])
    assert get_graph(LINE) is new
    assert list_graphs() == [old, new]


def test_unknown_graph_names_those_that_are_here() -> None:
    register(build_ask())
    with pytest.raises(NotFoundError, match=r"desk\.ask"):
        get_graph(LINE)
    assert find_graph(LINE) is None


def test_unknown_revision_names_those_that_are_here() -> None:
    graph = register(build_line(OLD))
    with pytest.raises(NotFoundError, match=graph.digest):
        get_graph(LINE, digest="sha256:" + "0" * 64)
    with pytest.raises(NotFoundError, match=r"version 9\.9\.9"):
        get_graph(LINE, version="9.9.9")


def test_registry_without_graphs_says_none() -> None:
    with pytest.raises(NotFoundError, match="none"):
        get_graph(LINE)
