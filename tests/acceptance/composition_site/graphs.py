"""What a worker process registers: the composition that its environment names."""

import os

from stateknot.registry import register
from tests.acceptance.composition_site.loops import build

register(build(os.environ["COMPOSITION"]))
