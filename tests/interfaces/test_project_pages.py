"""The project itself: its security header, static files and first page."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from project.content_security import POLICY

if TYPE_CHECKING:
    from django.test import Client

REQUIRED = (
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
)


@pytest.mark.django_db
def test_page_carries_the_content_security_policy(client: Client) -> None:
    response = client.get("/admin/login/")
    assert response.status_code == 200
    assert response.headers["Content-Security-Policy"] == POLICY


def test_policy_admits_nothing_inline() -> None:
    directives = POLICY.split("; ")
    assert set(directives) >= set(REQUIRED)
    assert "unsafe" not in POLICY


def test_first_page_leads_to_the_admin(client: Client) -> None:
    response = client.get("/")
    assert response.headers["Location"] == "/admin/stateknot/"


def _evaluate(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, as in production: DEBUG is off there."""
    prelude = "import django; django.setup()\n"
    env = {**os.environ, "DEBUG": "False", **variables}
    return subprocess.run(
        [sys.executable, "-c", prelude + code],
        cwd=settings.BASE_DIR,
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )


def test_static_file_is_served_without_debug() -> None:
    """Nothing is collected first: a fresh machine has its styles at once."""
    code = (
        "from django.test import Client\n"
        "client = Client(headers={'host': 'localhost'})\n"
        "page = client.get('/static/admin/css/base.css')\n"
        "print(page.status_code, page.headers['Content-Type'])"
    )
    done = _evaluate(code, SECRET_KEY="k" * 50)
    assert done.stdout.split()[:2] == ["200", "text/css;"], done.stderr


def test_settings_without_secret_key_refuse_production() -> None:
    done = _evaluate("", SECRET_KEY="")
    assert done.returncode != 0
    assert "set SECRET_KEY to 50 random characters" in done.stderr
