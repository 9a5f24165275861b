"""The project's settings with the engine in a database beside the default one."""

import os
from pathlib import Path

from project.settings import *  # noqa: F403 - settings are extended by name
from project.settings import DATABASES

FOLDER = Path(os.environ["TWO_DATABASES"])
DATABASES = {
    alias: {**DATABASES["default"], "NAME": FOLDER / f"{alias}.sqlite3"}
    for alias in ("default", "engine")
}
STATEKNOT = {"database": "engine"}
