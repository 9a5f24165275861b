"""The project's settings, with a lost worker noticed within two seconds."""

from project.settings import *  # noqa: F403 - settings are extended by name
from project.settings import INSTALLED_APPS, Q_CLUSTER

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.once_site"]
STATEKNOT = {"lease_seconds": 1.5, "wake_grace_seconds": 0.5}
Q_CLUSTER = {**Q_CLUSTER, "poll": 0.1}
