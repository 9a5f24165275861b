"""The settings of a machine whose clock is an hour behind."""

from datetime import timedelta

import time_machine

from tests.acceptance.matrix_site.settings import *  # noqa: F403 - extended by name

# For the life of the process, and of those it forks.
time_machine.travel(-timedelta(hours=1), tick=True).start()
