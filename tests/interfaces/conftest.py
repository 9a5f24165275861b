"""What tests of the interfaces share: a superuser who never types a password."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def admin_user(db: None) -> Any:
    """Replace pytest-django's: hashing a password takes longer than most tests."""
    # This file is read before the settings are; see tests/conftest.py.
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    return users.create_user("admin", is_staff=True, is_superuser=True)
