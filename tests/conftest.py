"""The test session: its database, its browser, what it leaves out.

Owns `--database`, the marker `only_on`, and the fixtures `chromium`, `database_kind`,
`second_process_env` and `register_only`. Read `tests/README.md` for what goes where and
`tests/databases.py` for where PostgreSQL comes from.

Note [Settings after the option]
    Django reads DATABASE_URL when its settings load, so the option must be read before.
    pytest-django loads the settings before any conftest when it finds
    DJANGO_SETTINGS_MODULE in the configuration; therefore the variable is set here,
    together with DATABASE_URL, and pytest-django sets Django up after this hook. The
    workers of xdist inherit both from the session that started them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests import left_out
from tests.databases import POSTGRES, SQLITE, SessionDatabase, open_database

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = "project.settings"
SESSION_DATABASE = pytest.StashKey[SessionDatabase]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=(SQLITE, POSTGRES),
        default=SQLITE,
        help="database to test on; postgres takes DATABASE_URL or starts a server",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the database, then let Django read its settings.

    With `-p no:django` neither happens: the kernel's tests need no Django.
    """
    passive = config.option.help or config.option.version
    if passive or not config.pluginmanager.hasplugin("django"):
        return
    if not hasattr(config, "workerinput"):
        _enter_database(config)
    from django.conf import settings

    settings.DATABASES  # noqa: B018  (loads them; See Note [Settings after the option])


def _enter_database(config: pytest.Config) -> None:
    if os.environ.get("DJANGO_SETTINGS_MODULE"):
        raise pytest.UsageError(
            "DJANGO_SETTINGS_MODULE is set, so Django loaded its settings before "
            "--database was read; unset it, the tests choose it themselves"
        )
    database = open_database(config.option.database)
    config.stash[SESSION_DATABASE] = database
    os.environ["DATABASE_URL"] = database.url
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS


def pytest_unconfigure(config: pytest.Config) -> None:
    database = config.stash.get(SESSION_DATABASE, None)
    if database is not None:
        database.close()


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.option.database}"


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect the tests that are about the other database."""
    elsewhere = [item for item in items if not _belongs_here(item, config)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]


def _belongs_here(item: pytest.Item, config: pytest.Config) -> bool:
    marker = item.get_closest_marker("only_on")
    return marker is None or config.option.database in marker.args


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    if left_out.in_ci():
        left_out.fail_if_left_out(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    report = yield
    if left_out.in_ci():
        left_out.fail_if_left_out(report)
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in left_out.describe(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def database_kind(pytestconfig: pytest.Config) -> str:
    """Return "sqlite" or "postgres"."""
    kind: str = pytestconfig.option.database
    return kind


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Chromium; without one the test is left out."""
    return left_out.find_chromium() or pytest.skip(left_out.NO_CHROMIUM)


@pytest.fixture
def second_process_env(transactional_db: None) -> dict[str, str]:
    """Return the environment for a process that shares this test's database.

    For `subprocess.Popen([sys.executable, "manage.py", ...], cwd=BASE_DIR, env=...)`.
    The test commits for real (`transactional_db`), since another process sees nothing
    of an open transaction; end the process before the test ends, for its tables are
    emptied then.
    """
    from django.db import connection

    return {**os.environ, "DATABASE_URL": _url_of(connection.settings_dict["NAME"])}


def _url_of(name: str) -> str:
    """Return the session's DATABASE_URL with the name of the test's own database."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    if parts.scheme == SQLITE:
        return f"sqlite:///{name}"
    return urlunsplit(parts._replace(path=f"/{name}"))


@pytest.fixture
def register_only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give what makes the graphs given the only ones of this process."""
    from stateknot import registry

    def replace(*graphs: Any) -> None:
        monkeypatch.setattr(registry, "_graphs", {})
        monkeypatch.setattr(registry, "_schedules", {})
        for graph in graphs:
            registry.register(graph)

    return replace
