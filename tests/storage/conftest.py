"""Both stores under one name, so that each contract test runs over each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stateknot import MemoryCheckpointer

if TYPE_CHECKING:
    from stateknot.kernel.store import Store


@pytest.fixture(params=["memory", pytest.param("django", marks=pytest.mark.django_db)])
def store(request: pytest.FixtureRequest) -> Store:
    """Give an empty store; the database one sees the test's own transaction."""
    if request.param == "memory":
        return MemoryCheckpointer()
    # Models cannot be imported before the session has read Django's settings.
    from stateknot.storage import DjangoCheckpointer

    return DjangoCheckpointer()
