"""Settings of the measured worker: those of the measuring process, by environment."""

import json
import os

from bench.databases import settings_of

globals().update(settings_of(json.loads(os.environ["STATEKNOT_BENCH_URLS"])))
