"""As a project writes it that has its queue in Redis: no `orm`, no broker class."""

import os

from tests.acceptance.crash_site.settings import *  # noqa: F403 - settings by name
from tests.acceptance.crash_site.settings import Q_CLUSTER

Q_CLUSTER = {k: v for k, v in Q_CLUSTER.items() if k not in ("orm", "broker_class")}
Q_CLUSTER["redis"] = {"unix_socket_path": os.environ["STATEKNOT_TEST_REDIS"]}
