"""The project's settings for workers that are killed on purpose."""

from project.settings import *  # noqa: F403 - settings are extended by name
from project.settings import INSTALLED_APPS, Q_CLUSTER

INSTALLED_APPS = [*INSTALLED_APPS, "bench.soak"]
# On, Django keeps and listens to every statement.
DEBUG = False
STATEKNOT = {"lease_seconds": 3.0, "wake_grace_seconds": 3.0}
Q_CLUSTER = {**Q_CLUSTER, "poll": 0.1}
