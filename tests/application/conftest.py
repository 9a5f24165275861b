"""Graphs that are registered for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stateknot import registry

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def register_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give what makes the graphs given the only ones of this process."""

    def replace(*graphs: Any) -> None:
        monkeypatch.setattr(registry, "_graphs", {})
        monkeypatch.setattr(registry, "_schedules", {})
        for graph in graphs:
            registry.register(graph)

    return replace


@pytest.fixture
def desk(register_only: Callable[..., None]) -> None:
    """Register the graphs of `desk.py`."""
    from tests.application.desk import build_all

    register_only(*build_all())
