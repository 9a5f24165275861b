"""As a project writes it that has the engine in a database of its own.

The default one cannot be used at all: whatever asks it for anything fails.
"""

from tests.acceptance.crash_site.settings import *  # noqa: F403 - settings by name
from tests.acceptance.crash_site.settings import (
    DATABASES,
    INSTALLED_APPS,
    Q_CLUSTER,
    STATEKNOT,
)

DATABASES = {
    "default": {"ENGINE": "django.db.backends.dummy"},
    "flows": DATABASES["default"],
}
DATABASE_ROUTERS = ["tests.acceptance.flows_site.routing.FlowsRouter"]
STATEKNOT = {**STATEKNOT, "database": "flows"}
Q_CLUSTER = {**Q_CLUSTER, "orm": "flows"}
INSTALLED_APPS = [name for name in INSTALLED_APPS if name != "project.audit"]
