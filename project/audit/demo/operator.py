"""The demo's operator: a superuser with a new password at each start.

The password is printed once and stored only as Django stores passwords, so a second
start cannot show the old one: it sets a new one.
"""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model

NAME = "operator"
PASSWORD_BYTES = 9


def reset_operator() -> str:
    """Make the operator, or give the existing one a new password; returns it."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    users = get_user_model()._default_manager
    user, _created = users.get_or_create(username=NAME)
    user.is_staff = user.is_superuser = user.is_active = True
    user.set_password(password)
    user.save()
    return password
