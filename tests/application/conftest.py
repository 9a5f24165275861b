"""Graphs that are registered for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def desk(register_only: Callable[..., None]) -> None:
    """Register the graphs of `desk.py`."""
    from tests.application.desk import build_all

    register_only(*build_all())
