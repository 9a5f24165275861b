"""Pytest fixtures: name this module in `pytest_plugins`, or import what you need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stateknot.testing import running
from stateknot.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.runtime.execution import GraphExecution


@pytest.fixture
def fake_clock() -> FakeClock:
    """Give a clock that only moves when the engine sleeps or the test says so."""
    return FakeClock()


@pytest.fixture
def in_memory(fake_clock: FakeClock) -> Callable[..., running.InMemory]:
    """Give a maker of in-memory runs under the test's `fake_clock`."""

    def make(*arguments: object, **options: object) -> running.InMemory:
        return running.InMemory(*arguments, clock=fake_clock, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def run_in_memory() -> Callable[..., GraphExecution]:
    """Give the function of that name."""
    return running.run_in_memory
