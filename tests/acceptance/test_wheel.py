"""The wheel, installed into an empty Django project that knows nothing of this tree.

The package lies in a folder of its own, before everything else on the path; the project
has no template folder, so pages and their styles must come from inside the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
from pathlib import Path
BASE_DIR = Path(__file__).parent
SECRET_KEY = "empty"
DEBUG = True
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "empty_urls"
USE_TZ = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles",
    "rest_framework", "django_q", "stateknot", "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
DATABASES = {"default": {
    "ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3",
    "OPTIONS": {"transaction_mode": "IMMEDIATE"},
}}
Q_CLUSTER = {
    "name": "empty", "orm": "default", "timeout": 300, "retry": 330, "queue_limit": 2,
    "ack_failures": True, "max_attempts": 1, "save_limit": -1,
}
"""
URLS = """
from django.contrib import admin
from django.urls import include, path
urlpatterns = [
    path("admin/", admin.site.urls), path("api/", include("stateknot.api.urls")),
]
"""
GRAPHS = """
from pydantic import BaseModel
from stateknot import START, GraphBuilder
from stateknot.registry import register

class Order(BaseModel):
    total: int = 0

def pay(order):
    if order.total < 0:
        raise ValueError("nothing to pay")
    return {"total": order.total + 1}

builder = GraphBuilder("shop.order", state=Order)
builder.add_node("pay", pay).add_edge(START, "pay")
register(builder.compile())
"""
VISIT = """
import json
import django
django.setup()
import stateknot
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import reverse
from stateknot.services import start_run
from stateknot.tasks import drive

setup_test_environment()
call_command("check", "--fail-level=WARNING")
call_command("migrate", verbosity=0)
run = start_run("shop.order", {"total": -1}, thread_id="order-1")
drive(str(run.id))
run.refresh_from_db()
client = Client()
client.force_login(User.objects.create_superuser("ada"))
addresses = [
    reverse(f"admin:stateknot_{name}_changelist")
    for name in ("run", "thread", "wait", "graphrevision")
]
pages = {address: client.get(address).status_code for address in addresses}
page = client.get(reverse("admin:stateknot_run_change", args=[run.id]))
print(json.dumps({
    "package": stateknot.__file__,
    "status": run.status,
    "pages": pages,
    "page": page.content.decode(),
    "templates": sorted({t.origin.name for t in page.templates if t.origin
                         and "stateknot" in (t.name or "")}),
    "style": finders.find("stateknot/admin.css"),
    "api": client.get("/api/runs").status_code,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, install it alone into a folder, and return the folder."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    run([sys.executable, "-m", *build], cwd=folder)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    pip = ["pip", "install", "--no-deps", "--no-index", "--target", str(target)]
    run([sys.executable, "-m", *pip, str(wheel)], cwd=folder)
    return target


def run(command: list[str], *, cwd: Path, **env: str) -> str:
    """Run a command to its end; gives what it printed."""
    inherited = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def visit(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Make an empty project, let a run fail in it, and open the admin."""
    project = tmp_path_factory.mktemp("project")
    (project / "shop").mkdir()
    files = {
        "empty_settings.py": SETTINGS,
        "empty_urls.py": URLS,
        "shop/__init__.py": "",
        "shop/graphs.py": GRAPHS,
        "visit.py": VISIT,
    }
    for name, text in files.items():
        (project / name).write_text(text)
    output = run(
        [sys.executable, "visit.py"],
        cwd=project,
        PYTHONPATH=str(installed),
        DJANGO_SETTINGS_MODULE="empty_settings",
    )
    seen: dict[str, Any] = json.loads(output.splitlines()[-1])
    return seen


def test_package_is_the_installed_one(installed: Path, visit: dict[str, Any]) -> None:
    assert Path(visit["package"]).is_relative_to(installed)


def test_run_fails_in_the_empty_project(visit: dict[str, Any]) -> None:
    assert visit["status"] == "failed"


def test_admin_pages_open(visit: dict[str, Any]) -> None:
    assert set(visit["pages"].values()) == {200}
    assert "nothing to pay" in visit["page"]


def test_templates_come_from_the_package(
    installed: Path, visit: dict[str, Any]
) -> None:
    assert visit["templates"]
    assert all(Path(name).is_relative_to(installed) for name in visit["templates"])


def test_style_comes_from_the_package(installed: Path, visit: dict[str, Any]) -> None:
    assert Path(visit["style"]).is_relative_to(installed)


def test_api_answers(visit: dict[str, Any]) -> None:
    assert visit["api"] == 200


def test_wheel_holds_the_package_alone(installed: Path) -> None:
    (wheel,) = installed.parent.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"stateknot"}
    assert "stateknot/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]
