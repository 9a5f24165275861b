"""The project's settings, with a lost worker noticed within seconds."""

from project.settings import *  # noqa: F403 - settings are extended by name
from project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.spread_site"]
STATEKNOT = {"lease_seconds": 2.0, "wake_grace_seconds": 1.0}
