"""What a worker process registers."""

from stateknot.registry import register
from tests.acceptance.spread_site.parts import build

register(build())
